#include "front/http/check_codec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/seconds.h"
#include "front/http/answer_json.h"
#include "front/http/json_reader.h"
#include "front/http/json_text.h"
#include "limiter/combine.h"
#include "limiter/hold_request.h"
#include "limiter/words.h"
#include "sluice/limit.h"
#include "store/ban_store.h"

namespace sluice::http {
namespace {

using VerbKind = limiter::CounterVerb::Kind;

/// What a request has, in the order in which it is told; and those that it must have.
struct Fields {
  std::span<const std::string_view> all;
  std::size_t needed = 2;  ///< so many of the first
  std::string_view told;
};

constexpr std::array<std::string_view, 4> kCheckFields{"domain", "descriptors", "cost", "explain"};
constexpr std::array<std::string_view, 3> kCostFields{"domain", "descriptors", "cost"};
constexpr std::array<std::string_view, 5> kReserveFields{"domain", "descriptors", "cost", "ttl", "explain"};
constexpr std::array<std::string_view, 4> kRefundFields{"domain", "descriptors", "cost", "at"};
constexpr std::array<std::string_view, 5> kSettleFields{"domain", "descriptors", "reserved", "actual", "at"};
constexpr std::array<std::string_view, 2> kResetFields{"domain", "descriptors"};
constexpr std::array<std::string_view, 3> kBanFields{"domain", "descriptors", "for"};
constexpr std::array<std::string_view, 1> kReleaseFields{"lease"};
constexpr std::array<std::string_view, 2> kCommitFields{"reservation", "actual"};
constexpr std::array<std::string_view, 1> kCancelFields{"reservation"};

Fields fields_of(Form form) {
  switch (form) {
    case Form::penalize:
      break;
    case Form::check:
      return {.all = kCheckFields, .told = "domain, descriptors, cost and explain"};
    case Form::reserve:
      return {.all = kReserveFields, .needed = 3, .told = "domain, descriptors, cost, ttl and explain"};
    case Form::refund:
      return {.all = kRefundFields, .told = "domain, descriptors, cost and at"};
    case Form::settle:
      return {.all = kSettleFields, .needed = 4, .told = "domain, descriptors, reserved, actual and at"};
    case Form::reset:
      return {.all = kResetFields, .told = "domain and descriptors"};
    case Form::ban:
      return {.all = kBanFields, .needed = 3, .told = "domain, descriptors and for"};
    case Form::release:
      return {.all = kReleaseFields, .needed = 1, .told = "lease"};
    case Form::commit:
      return {.all = kCommitFields, .told = "reservation and actual"};
    case Form::cancel:
      return {.all = kCancelFields, .needed = 1, .told = "reservation"};
  }
  return {.all = kCostFields, .told = "domain, descriptors and cost"};
}

VerbKind verb_of(Form form) {
  switch (form) {
    case Form::refund:
      return VerbKind::refund;
    case Form::settle:
      return VerbKind::settle;
    case Form::penalize:
      return VerbKind::penalize;
    case Form::ban:
      return VerbKind::ban;
    default:
      return VerbKind::reset;
  }
}

/// Where in the body the decoder is, for messages. Negative: not inside one.
struct Path {
  int request = -1;
  int descriptor = -1;
  int entry = -1;
  std::string_view field;
};

std::string shown(std::string_view token) {
  constexpr std::size_t most = 40;
  std::string text(token.substr(0, most));
  if (token.size() > most) text += "…";
  return text;
}

class CheckDecoder {
 public:
  CheckDecoder(std::string_view text, Form form, RequestBatch& batch, DecodeFault& fault)
      : reader_(text, batch.arena()), form_(form), batch_(batch), fault_(fault) {}

  /// One request that has these members, too.
  CheckDecoder(std::string_view text, MoreMembers& more, RequestBatch& batch, DecodeFault& fault)
      : reader_(text, batch.arena()), more_(&more), batch_(batch), fault_(fault) {}

  bool decode(bool& is_array);

 private:
  bool request();
  bool request_member(std::string_view name);
  bool more_member(std::string_view name);
  bool descriptors();
  bool descriptor();
  bool descriptor_object();
  bool descriptor_member(std::string_view name, bool& has_entries, bool& has_cost,
                         std::optional<std::string_view>& key);
  bool entry_map();
  bool entry_list();
  bool entry_object();
  bool add(std::string_view key, std::string_view value);
  bool string(std::string_view& value);
  bool cost(std::uint64_t& value);
  bool time(std::string_view expected, std::int64_t most, std::int64_t& value);
  bool duration(std::int64_t most, std::int64_t& value);
  bool hold(limiter::Hold::Kind kind);
  [[nodiscard]] bool takes(std::string_view field) const;

  /// Is the next value of this type? If not, that is the fault.
  bool expect(JsonType type, std::string_view expected);
  bool refuse(std::string_view what);
  bool repeated(std::string_view name);
  bool malformed();
  [[nodiscard]] std::string path() const;

  JsonReader reader_;
  Form form_ = Form::check;
  MoreMembers* more_ = nullptr;
  std::vector<std::string_view> given_;  ///< fields of the present request
  RequestBatch& batch_;
  DecodeFault& fault_;
  Path at_;
  std::uint64_t actual_ = 0;
};

std::string CheckDecoder::path() const {
  std::string text;
  if (at_.request >= 0) text += '[' + std::to_string(at_.request) + ']';
  if (at_.descriptor >= 0) {
    if (!text.empty()) text += '.';
    text += "descriptors[" + std::to_string(at_.descriptor) + ']';
  }
  if (at_.entry >= 0) text += '[' + std::to_string(at_.entry) + ']';
  if (!at_.field.empty()) {
    if (!text.empty()) text += '.';
    text += at_.field;
  }
  return text;
}

bool CheckDecoder::malformed() {
  fault_.code = "invalid_json";
  fault_.message = reader_.place() + ": " + reader_.fault();
  return false;
}

bool CheckDecoder::refuse(std::string_view what) {
  if (reader_.failed()) return malformed();
  fault_.code = "invalid_request";
  fault_.message = path();
  if (!fault_.message.empty()) fault_.message += ": ";
  fault_.message += what;
  fault_.message += " (" + reader_.place() + ")";
  return false;
}

bool CheckDecoder::repeated(std::string_view name) {
  at_.field = name;
  return refuse("given twice");
}

bool CheckDecoder::expect(JsonType type, std::string_view expected) {
  const JsonType found = reader_.peek();
  if (found == type) return true;
  return refuse("expected " + std::string(expected) + ", found " + std::string(describe(found)));
}

bool CheckDecoder::decode(bool& is_array) {
  batch_.clear();
  const JsonType type = reader_.peek();
  is_array = type == JsonType::array;
  if (!is_array) {
    if (!expect(JsonType::object, "a request (an object) or an array of requests") || !request()) return false;
    return reader_.finish() || malformed();
  }
  if (!reader_.begin_array()) return malformed();
  while (reader_.next_element()) {
    ++at_.request;
    at_.field = {};
    if (static_cast<std::size_t>(at_.request) >= kMaxRequests && reader_.peek() != JsonType::none) {
      at_.request = -1;
      return refuse("more than " + std::to_string(kMaxRequests) + " requests in one array");
    }
    if (!expect(JsonType::object, "a request (an object)") || !request()) return false;
  }
  if (!reader_.finish()) return malformed();
  if (at_.request < 0) return refuse("an array without requests");
  return true;
}

bool CheckDecoder::takes(std::string_view field) const {
  return std::ranges::find(fields_of(form_).all, field) != fields_of(form_).all.end();
}

bool CheckDecoder::request() {
  batch_.begin_request();
  batch_.verb().kind = verb_of(form_);
  actual_ = 0;
  given_.clear();
  if (!reader_.begin_object()) return malformed();
  std::string_view name;
  while (reader_.next_member(name)) {
    at_.field = name;
    const bool is_more = more_ != nullptr && more_->has(name);
    if (!is_more && !takes(name)) {
      return refuse("unknown field; a request has " + std::string(more_ ? more_->told() : fields_of(form_).told));
    }
    if (std::ranges::find(given_, name) != given_.end()) return repeated(name);
    given_.push_back(name);
    if (is_more ? !more_member(name) : !request_member(name)) return false;
  }
  if (reader_.failed()) return malformed();
  at_.field = {};
  const Fields fields = fields_of(form_);
  for (const std::string_view needed : fields.all.first(fields.needed)) {
    if (std::ranges::find(given_, needed) == given_.end()) {
      return refuse("a request needs \"" + std::string(needed) + '"');
    }
  }
  if (form_ == Form::reserve && batch_.request().reserve.count() == 0) {
    batch_.request().reserve = std::chrono::seconds(60);
  }
  if (form_ == Form::commit) batch_.verb() = batch_.hold().commit(actual_);
  return true;
}

bool CheckDecoder::more_member(std::string_view name) {
  std::string what;
  if (more_->read(name, reader_, what)) return true;
  return what.empty() ? malformed() : refuse(what);
}

bool CheckDecoder::request_member(std::string_view name) {
  if (name == "descriptors") return descriptors();
  if (name == "cost") return cost(batch_.request().cost);
  if (name == "reserved") return cost(batch_.verb().reserved);
  if (name == "actual") return cost(form_ == Form::commit ? actual_ : batch_.verb().actual);
  if (name == "explain") {
    return expect(JsonType::boolean, "true or false") && (reader_.read_bool(batch_.request().explain) || malformed());
  }
  if (name == "lease") return hold(limiter::Hold::Kind::lease);
  if (name == "reservation") return hold(limiter::Hold::Kind::reservation);
  std::int64_t nanoseconds = 0;
  if (name == "at") {
    if (!time("seconds since 1970 UTC with at most 9 decimals and no exponent, such as 1767225600.25", 4'000'000'000,
              nanoseconds)) {
      return false;
    }
    batch_.verb().at = nanoseconds;
    return true;
  }
  if (name == "for") {
    if (!duration(std::chrono::seconds(store::kLongestBan).count(), nanoseconds)) return false;
    batch_.verb().time = std::chrono::ceil<std::chrono::microseconds>(std::chrono::nanoseconds(nanoseconds));
    return true;
  }
  if (name == "ttl") {
    if (!duration(std::chrono::duration_cast<std::chrono::seconds>(limiter::kLongestReservation).count(),
                  nanoseconds)) {
      return false;
    }
    batch_.request().reserve = std::chrono::nanoseconds(nanoseconds);
    return true;
  }
  if (!string(batch_.request().domain)) return false;
  return !batch_.request().domain.empty() || refuse("must not be empty");
}

bool CheckDecoder::descriptors() {
  if (!expect(JsonType::array, "an array of descriptors") || !reader_.begin_array()) return false;
  at_.field = {};
  while (reader_.next_element()) {
    ++at_.descriptor;
    if (batch_.descriptor_count() >= kMaxDescriptors && reader_.peek() != JsonType::none) {
      at_.descriptor = -1;
      at_.field = "descriptors";
      return refuse("more than " + std::to_string(kMaxDescriptors) + " descriptors in one request");
    }
    if (!descriptor()) return false;
    at_.field = {};
  }
  if (reader_.failed()) return malformed();
  at_.descriptor = -1;
  at_.field = "descriptors";
  if (batch_.descriptor_count() == 0) return refuse("must not be empty");
  return true;
}

bool CheckDecoder::descriptor() {
  batch_.begin_descriptor();
  const JsonType type = reader_.peek();
  if (type == JsonType::array) {
    if (!entry_list()) return false;
  } else {
    if (!expect(JsonType::object, R"(a descriptor: {"key": "value", …} or [{"key": "…", "value": "…"}, …])"))
      return false;
    if (!descriptor_object()) return false;
  }
  if (batch_.entries().empty()) return refuse("a descriptor needs at least one entry");
  return true;
}

/// Short: every member is an entry. Long, when `entries` is an object or an array or `cost` is not a string: just these
/// two members. So both words stay usable as keys.
bool CheckDecoder::descriptor_object() {
  bool has_entries = false;
  bool has_cost = false;
  std::optional<std::string_view> first_key;
  if (!reader_.begin_object()) return malformed();
  std::string_view name;
  while (reader_.next_member(name)) {
    at_.field = name;
    if (!descriptor_member(name, has_entries, has_cost, first_key)) return false;
  }
  if (reader_.failed()) return malformed();
  at_.field = {};
  if (has_cost && !has_entries) return refuse(R"(a descriptor with a cost needs its entries in "entries")");
  return true;
}

bool CheckDecoder::descriptor_member(std::string_view name, bool& has_entries, bool& has_cost,
                                     std::optional<std::string_view>& first_key) {
  const JsonType type = reader_.peek();
  const bool is_entries = name == "entries" && (type == JsonType::object || type == JsonType::array);
  const bool is_cost = name == "cost" && (type == JsonType::number || (has_entries && type != JsonType::none));
  if (is_entries || is_cost) {
    if (is_entries ? has_entries : has_cost) return repeated(name);
    if (first_key) {
      at_.field = *first_key;
      return refuse(R"(a descriptor with "entries" or a cost has nothing else beside them)");
    }
    if (is_cost) {
      if (!takes("cost") || form_ == Form::reserve) return refuse("a descriptor has no cost here");
      has_cost = true;
      return cost(batch_.descriptor().cost.emplace());
    }
    has_entries = true;
    at_.field = {};
    return type == JsonType::object ? entry_map() : entry_list();
  }
  if (has_entries || has_cost) {
    return refuse(R"(unknown field; a descriptor in this form has only "entries" and "cost")");
  }
  if (!first_key) first_key = name;
  std::string_view value;
  return string(value) && add(name, value);
}

bool CheckDecoder::entry_map() {
  if (!reader_.begin_object()) return malformed();
  std::string_view name;
  while (reader_.next_member(name)) {
    at_.field = name;
    std::string_view value;
    if (!string(value) || !add(name, value)) return false;
  }
  if (reader_.failed()) return malformed();
  at_.field = {};
  return true;
}

bool CheckDecoder::entry_list() {
  if (!reader_.begin_array()) return malformed();
  while (reader_.next_element()) {
    ++at_.entry;
    at_.field = {};
    if (!expect(JsonType::object, R"(an entry: {"key": "…", "value": "…"})") || !entry_object()) return false;
  }
  if (reader_.failed()) return malformed();
  at_.entry = -1;
  return true;
}

bool CheckDecoder::entry_object() {
  std::optional<std::string_view> key;
  std::optional<std::string_view> value;
  if (!reader_.begin_object()) return malformed();
  std::string_view name;
  while (reader_.next_member(name)) {
    at_.field = name;
    if (name != "key" && name != "value") return refuse(R"(unknown field; an entry has "key" and "value")");
    std::optional<std::string_view>& target = name == "key" ? key : value;
    if (target) return repeated(name);
    if (!string(target.emplace())) return false;
  }
  if (reader_.failed()) return malformed();
  at_.field = {};
  if (!key) return refuse(R"(an entry needs "key")");
  if (!value) return refuse(R"(an entry needs "value")");
  if (key->empty()) return refuse("the key must not be empty");
  if (batch_.entries().size() >= kMaxEntries) {
    return refuse("more than " + std::to_string(kMaxEntries) + " entries in one descriptor");
  }
  batch_.add_entry({*key, *value});
  return true;
}

bool CheckDecoder::add(std::string_view key, std::string_view value) {
  if (key.empty()) return refuse("the key must not be empty");
  const std::span<const Entry> entries = batch_.entries();
  if (entries.size() >= kMaxEntries) {
    return refuse("more than " + std::to_string(kMaxEntries) + " entries in one descriptor");
  }
  if (std::any_of(entries.begin(), entries.end(), [key](const Entry& entry) { return entry.key == key; })) {
    return refuse("given twice");
  }
  batch_.add_entry({key, value});
  return true;
}

bool CheckDecoder::string(std::string_view& value) {
  if (!expect(JsonType::string, "a string")) return false;
  return reader_.read_string(value) || malformed();
}

/// Seconds as ns, 0 … `most` seconds.
bool CheckDecoder::time(std::string_view expected, std::int64_t most, std::int64_t& value) {
  std::string_view token;
  if (!expect(JsonType::number, expected)) return false;
  if (!reader_.read_number(token)) return malformed();
  const auto seconds = parse_seconds(token, 9, most);
  if (!seconds) return refuse("expected " + std::string(expected) + ", found " + shown(token));
  value = seconds->count();
  return true;
}

bool CheckDecoder::duration(std::int64_t most, std::int64_t& value) {
  return time("seconds from 0 to " + std::to_string(most) + " with at most 9 decimals and no exponent, such as 2.5",
              most, value);
}

bool CheckDecoder::hold(limiter::Hold::Kind kind) {
  std::string_view text;
  if (!string(text)) return false;
  limiter::Hold hold;
  if (!limiter::from_text(text, hold) || hold.kind != kind) {
    return refuse(kind == limiter::Hold::Kind::lease ? "expected a lease as /v1/acquire has given it"
                                                     : "expected a reservation as /v1/reserve has given it");
  }
  const limiter::HoldRequest& request = batch_.set_hold(std::move(hold));
  batch_.verb() = kind == limiter::Hold::Kind::lease ? request.release() : request.commit(0);
  return true;
}

bool CheckDecoder::cost(std::uint64_t& value) {
  constexpr std::string_view expected = "a whole number from 0 to 1000000000000000";
  static_assert(kMaxTokens == 1'000'000'000'000'000);
  std::string_view token;
  if (!expect(JsonType::number, expected)) return false;
  if (!reader_.read_number(token)) return malformed();
  const auto parsed = std::from_chars(token.data(), token.data() + token.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != token.data() + token.size() || value > kMaxTokens) {
    return refuse("expected " + std::string(expected) + ", found " + shown(token));
  }
  return true;
}

// ---- answers

/// Of one descriptor: by what it was judged, and what that would say by itself.
void append_explanation(std::string& out, const limiter::Status& status) {
  const policy::Rule& rule = *status.rule;
  const Limit& numbers = rule.counted.numbers;
  append_name(out, "explain");
  out += R"({"mode":")";
  out += limiter::mode_name(rule.enforcement);
  out += '"';
  append_name(out, "path");
  append_json_string(out, rule.metric_path);
  if (!rule.unlimited) {
    append_name(out, "key");
    append_json_string(out, status.key);
    append_name(out, "cost");
    append_unsigned(out, status.cost);
    append_name(out, "algorithm");
    append_json_string(out, limiter::algorithm_name(numbers.algorithm));
    append_name(out, "rate");
    append_unsigned(out, numbers.rate);
    if (numbers.algorithm == Algorithm::concurrency) {
      append_wait(out, "ttl", Wait(numbers.ttl));
    } else {
      append_wait(out, "period", Wait(numbers.period));
    }
    if (numbers.algorithm == Algorithm::token_bucket) {
      append_name(out, "burst");
      append_unsigned(out, numbers.burst);
    }
    append_name(out, "fits");
    out += status.decision.allowed ? "true" : "false";
    if (!status.decision.allowed && limiter::has_figures(status.decision.source)) {
      append_wait(out, "retry_after", status.decision.retry_after);
    }
  }
  out += '}';
}

/// All members but the brace that opens and the one that closes.
void append_verdict(std::string& out, const limiter::Verdict& verdict) {
  out += verdict.allowed ? "\"allowed\":true" : "\"allowed\":false";
  append_name(out, "reason");
  out += '"';
  out += limiter::reason_of(verdict);
  out += '"';
  if (verdict.rule == nullptr) return;
  append_name(out, "limit_name");
  append_json_string(out, verdict.rule->label());
  if (verdict.rule->unlimited) return;
  append_name(out, "source");
  out += '"';
  out += limiter::source_name(verdict.decision.source);
  out += '"';
  if (verdict.has_figures()) append_figures(out, *verdict.rule, verdict.decision, verdict.allowed);
}

void append_answer(std::string& out, const limiter::Answer& answer) {
  append_verdict(out, limiter::verdict_of(answer));
  append_name(out, "descriptors");
  out += '[';
  for (std::size_t i = 0; i < answer.statuses.size(); ++i) {
    out += i == 0 ? "{" : ",{";
    append_verdict(out, limiter::verdict_of(answer, i));
    if (answer.explain && answer.statuses[i].rule != nullptr) append_explanation(out, answer.statuses[i]);
    out += '}';
  }
  out += ']';
}

}  // namespace

bool decode_form(std::string_view text, Form form, RequestBatch& batch, bool& is_array, DecodeFault& fault) {
  return CheckDecoder(text, form, batch, fault).decode(is_array);
}

bool decode_check_with(std::string_view text, MoreMembers& more, RequestBatch& batch, DecodeFault& fault) {
  bool is_array = false;
  if (!CheckDecoder(text, more, batch, fault).decode(is_array)) return false;
  if (!is_array) return true;
  fault = {.code = "invalid_request", .message = "expected one request (an object), found an array"};
  return false;
}

void encode_check(const limiter::Answer& answer, std::string& out) {
  out += '{';
  append_answer(out, answer);
  if (answer.hold) {
    const bool is_lease = answer.hold->kind == limiter::Hold::Kind::lease;
    append_name(out, is_lease ? "lease" : "reservation");
    append_json_string(out, limiter::to_text(*answer.hold));
    if (!is_lease) {
      append_wait(out, "expires_in", Wait(answer.hold->lasts));
    }
  }
  out += '}';
}

void encode_check_problem(const limiter::Answer& answer, unsigned status, std::string& out) {
  out += R"({"type":)";
  if (answer.has_figures) {
    out += R"("https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded")";
  } else {
    out += R"("about:blank","title":"Service Unavailable")";
  }
  append_name(out, "status");
  append_unsigned(out, status);
  append_name(out, "violated-policies");
  out += '[';
  bool first = true;
  for (const limiter::Status& told : answer.statuses) {
    if (!told.over_limit || told.rule == nullptr) continue;
    if (!first) out += ',';
    first = false;
    append_json_string(out, told.rule->label());
  }
  out += "],";
  append_answer(out, answer);
  out += '}';
}

}  // namespace sluice::http
