#include "front/http/check_codec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "front/http/answer_json.h"
#include "front/http/json_reader.h"
#include "front/http/json_text.h"
#include "sluice/limit.h"

namespace sluice::http {
namespace {

using VerbKind = limiter::CounterVerb::Kind;

/// What a request has, in the order in which it is told; and those that it must have.
struct Fields {
  std::span<const std::string_view> all;
  std::size_t needed = 2;  ///< so many of the first
  std::string_view told;
};

constexpr std::array<std::string_view, 3> kCostFields{"domain", "descriptors", "cost"};
constexpr std::array<std::string_view, 4> kRefundFields{"domain", "descriptors", "cost", "at"};
constexpr std::array<std::string_view, 5> kSettleFields{"domain", "descriptors", "reserved", "actual", "at"};
constexpr std::array<std::string_view, 2> kResetFields{"domain", "descriptors"};

Fields fields_of(std::optional<VerbKind> verb) {
  if (!verb || *verb == VerbKind::penalize) return {.all = kCostFields, .told = "domain, descriptors and cost"};
  if (*verb == VerbKind::refund) return {.all = kRefundFields, .told = "domain, descriptors, cost and at"};
  if (*verb == VerbKind::reset) return {.all = kResetFields, .told = "domain and descriptors"};
  return {.all = kSettleFields, .needed = 4, .told = "domain, descriptors, reserved, actual and at"};
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
  /// `verb`: none, a check.
  CheckDecoder(std::string_view text, std::optional<VerbKind> verb, RequestBatch& batch, DecodeFault& fault)
      : reader_(text, batch.arena()), verb_(verb), batch_(batch), fault_(fault) {}

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
  bool time(std::optional<std::int64_t>& value);
  [[nodiscard]] bool takes(std::string_view field) const;

  /// Is the next value of this type? If not, that is the fault.
  bool expect(JsonType type, std::string_view expected);
  bool refuse(std::string_view what);
  bool repeated(std::string_view name);
  bool malformed();
  [[nodiscard]] std::string path() const;

  JsonReader reader_;
  std::optional<VerbKind> verb_;
  MoreMembers* more_ = nullptr;
  std::vector<std::string_view> given_;  ///< fields of the present request
  RequestBatch& batch_;
  DecodeFault& fault_;
  Path at_;
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
  return std::ranges::find(fields_of(verb_).all, field) != fields_of(verb_).all.end();
}

bool CheckDecoder::request() {
  batch_.begin_request();
  if (verb_) batch_.verb().kind = *verb_;
  given_.clear();
  if (!reader_.begin_object()) return malformed();
  std::string_view name;
  while (reader_.next_member(name)) {
    at_.field = name;
    const bool is_more = more_ != nullptr && more_->has(name);
    if (!is_more && !takes(name)) {
      return refuse("unknown field; a request has " + std::string(more_ ? more_->told() : fields_of(verb_).told));
    }
    if (std::ranges::find(given_, name) != given_.end()) return repeated(name);
    given_.push_back(name);
    if (is_more ? !more_member(name) : !request_member(name)) return false;
  }
  if (reader_.failed()) return malformed();
  at_.field = {};
  const Fields fields = fields_of(verb_);
  for (const std::string_view needed : fields.all.first(fields.needed)) {
    if (std::ranges::find(given_, needed) == given_.end()) {
      return refuse("a request needs \"" + std::string(needed) + '"');
    }
  }
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
  if (name == "actual") return cost(batch_.verb().actual);
  if (name == "at") return time(batch_.verb().at);
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
      if (!takes("cost")) return refuse("a descriptor has no cost here");
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

/// Seconds since 1970 UTC as ns; what is beyond a ns is dropped.
bool CheckDecoder::time(std::optional<std::int64_t>& value) {
  constexpr std::string_view expected = "seconds since 1970 UTC without an exponent, such as 1767225600.25";
  constexpr std::int64_t most = 4'000'000'000;
  std::string_view token;
  if (!expect(JsonType::number, expected)) return false;
  if (!reader_.read_number(token)) return malformed();
  const std::size_t point = std::min(token.find('.'), token.size());
  const std::string_view whole = token.substr(0, point);
  std::string parts(token.substr(std::min(point + 1, token.size())));
  std::int64_t seconds = 0;
  std::int64_t rest = 0;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto parsed = std::from_chars(whole.data(), whole.data() + whole.size(), seconds);
  if (parsed.ec != std::errc{} || parsed.ptr != whole.data() + whole.size() || seconds < 0 || seconds > most ||
      !std::ranges::all_of(parts, is_digit)) {
    return refuse("expected " + std::string(expected) + ", found " + shown(token));
  }
  parts.resize(9, '0');
  std::from_chars(parts.data(), parts.data() + parts.size(), rest);
  value = seconds * 1'000'000'000 + rest;
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

bool store_failed(const Decision& decision) {
  return decision.source == Source::fallback_allow || decision.source == Source::fallback_deny;
}

/// A verdict to tell: of one descriptor, or of the request as a whole.
struct Verdict {
  bool allowed = true;
  bool fits = true;                    ///< what the limit itself found
  bool never_fits = false;             ///< and that whatever its state is
  const policy::Rule* rule = nullptr;  ///< null: no limit took part, because of `without_rule`
  const Decision& decision;
  std::string_view without_rule;
};

/// Why a limit said what it said.
std::string_view reason(const Verdict& verdict) {
  if (verdict.rule == nullptr) return verdict.without_rule;
  if (verdict.rule->unlimited) return "unlimited";
  if (store_failed(verdict.decision)) return "store_unavailable";
  if (!verdict.fits && verdict.allowed) return "shadow";
  if (!verdict.fits) return verdict.never_fits ? "never_fits" : "over_limit";
  return verdict.decision.mark == Mark::quota_hit ? "last_token" : "within_limit";
}

/// All members but the brace that opens and the one that closes.
void append_verdict(std::string& out, const Verdict& verdict) {
  out += verdict.allowed ? "\"allowed\":true" : "\"allowed\":false";
  append_name(out, "reason");
  out += '"';
  out += reason(verdict);
  out += '"';
  if (verdict.rule == nullptr) return;
  append_name(out, "limit_name");
  append_json_string(out, verdict.rule->label());
  if (verdict.rule->unlimited) return;
  append_name(out, "source");
  out += '"';
  out += source_name(verdict.decision.source);
  out += '"';
  if (!store_failed(verdict.decision)) append_figures(out, *verdict.rule, verdict.decision, verdict.allowed);
}

void append_answer(std::string& out, const limiter::Answer& answer) {
  const std::string_view without_rule = answer.known_domain ? "no_limit" : "unknown_domain";
  // The decision as a whole says allowed where a limit in shadow mode decides; its own verdict is in its status.
  const std::size_t which = answer.decision.which;
  const limiter::Status* deciding = which < answer.statuses.size() ? &answer.statuses[which] : nullptr;
  append_verdict(out, {.allowed = answer.allowed,
                       .fits = deciding != nullptr ? deciding->decision.allowed : answer.allowed,
                       .never_fits = deciding != nullptr && deciding->never_fits,
                       .rule = answer.deciding,
                       .decision = answer.decision,
                       .without_rule = without_rule});
  append_name(out, "descriptors");
  out += '[';
  for (std::size_t i = 0; i < answer.statuses.size(); ++i) {
    const limiter::Status& status = answer.statuses[i];
    out += i == 0 ? "{" : ",{";
    append_verdict(out, {.allowed = !status.over_limit,
                         .fits = status.decision.allowed,
                         .never_fits = status.never_fits,
                         .rule = status.rule,
                         .decision = status.decision,
                         .without_rule = without_rule});
    out += '}';
  }
  out += ']';
}

}  // namespace

bool decode_check(std::string_view text, RequestBatch& batch, bool& is_array, DecodeFault& fault) {
  return CheckDecoder(text, std::nullopt, batch, fault).decode(is_array);
}

bool decode_check_with(std::string_view text, MoreMembers& more, RequestBatch& batch, DecodeFault& fault) {
  bool is_array = false;
  if (!CheckDecoder(text, more, batch, fault).decode(is_array)) return false;
  if (!is_array) return true;
  fault = {.code = "invalid_request", .message = "expected one request (an object), found an array"};
  return false;
}

bool decode_verb(std::string_view text, limiter::CounterVerb::Kind kind, RequestBatch& batch, bool& is_array,
                 DecodeFault& fault) {
  return CheckDecoder(text, kind, batch, fault).decode(is_array);
}

void encode_check(const limiter::Answer& answer, std::string& out) {
  out += '{';
  append_answer(out, answer);
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
