#include "front/http/json_codec.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "front/http/json_reader.h"
#include "front/http/json_text.h"
#include "front/http/proto_number.h"
#include "sluice/limit.h"

namespace sluice::http {
namespace {

constexpr std::array<std::string_view, 8> kUnitNames = {"UNKNOWN", "SECOND", "MINUTE", "HOUR",
                                                        "DAY",     "MONTH",  "YEAR",   "WEEK"};
constexpr std::uint32_t kLargest32 = std::numeric_limits<std::uint32_t>::max();

/// A message's field by either of its names; `bit` marks it as seen.
struct Field {
  std::string_view name;
  std::string_view original;
  unsigned bit;
};

constexpr unsigned kFirst = 1;
constexpr unsigned kSecond = 2;
constexpr unsigned kThird = 4;
constexpr unsigned kFourth = 8;

constexpr std::array<Field, 3> kRequestFields = {
    {{"domain", "domain", kFirst}, {"descriptors", "descriptors", kSecond}, {"hitsAddend", "hits_addend", kThird}}};
constexpr std::array<Field, 4> kDescriptorFields = {{{"entries", "entries", kFirst},
                                                     {"limit", "limit", kSecond},
                                                     {"hitsAddend", "hits_addend", kThird},
                                                     {"isNegativeHits", "is_negative_hits", kFourth}}};
constexpr std::array<Field, 2> kEntryFields = {{{"key", "key", kFirst}, {"value", "value", kSecond}}};
constexpr std::array<Field, 2> kLimitFields = {
    {{"requestsPerUnit", "requests_per_unit", kFirst}, {"unit", "unit", kSecond}}};

class RateLimitDecoder {
 public:
  RateLimitDecoder(std::string_view text, RequestBatch& batch, DecodeFault& fault)
      : reader_(text, batch.arena()), batch_(batch), fault_(fault) {}

  bool decode() {
    batch_.clear();
    batch_.begin_request();
    const bool read = message("RateLimitRequest", kRequestFields, [this](unsigned bit) { return request_field(bit); });
    return read && (reader_.finish() || malformed());
  }

 private:
  bool request_field(unsigned bit) {
    if (bit == kFirst) return string(batch_.request().domain);
    if (bit == kSecond) return list([this] { return descriptor(); });
    std::uint64_t hits = 0;
    if (!number(kLargest32, hits)) return false;
    batch_.request().cost = std::max<std::uint64_t>(hits, 1);
    batch_.request().has_cost = hits != 0;
    return true;
  }

  bool descriptor() {
    if (batch_.descriptor_count() >= kMaxDescriptors && reader_.peek() != JsonType::none) {
      return refuse("at most " + std::to_string(kMaxDescriptors) + " descriptors");
    }
    batch_.begin_descriptor();
    return message("RateLimitDescriptor", kDescriptorFields, [this](unsigned bit) { return descriptor_field(bit); });
  }

  bool descriptor_field(unsigned bit) {
    if (bit == kFirst) return list([this] { return entry(); });
    if (is_null()) return reader_.read_null() || malformed();
    if (bit == kSecond) return limit();
    if (bit == kFourth) return negative_hits();
    // Beyond what a cost may be is the limiter's to refuse, as it is for every front.
    return number(std::numeric_limits<std::uint64_t>::max(), batch_.descriptor().cost.emplace());
  }

  bool negative_hits() {
    bool negative = false;
    if (!expect(JsonType::boolean, "a boolean")) return false;
    if (!reader_.read_bool(negative)) return malformed();
    return !negative || refuse("is_negative_hits is not supported: nothing was charged or refunded");
  }

  bool entry() {
    if (batch_.entries().size() >= kMaxEntries && reader_.peek() != JsonType::none)
      return refuse("at most " + std::to_string(kMaxEntries) + " entries");
    Entry read;
    const auto field = [this, &read](unsigned bit) { return string(bit == kFirst ? read.key : read.value); };
    if (!message("RateLimitDescriptor.Entry", kEntryFields, field)) return false;
    batch_.add_entry(read);
    return true;
  }

  bool limit() {
    LimitOverride read{.requests_per_unit = 0, .unit = Unit::unknown};
    const auto field = [this, &read](unsigned bit) {
      if (bit == kSecond) return unit(read.unit);
      std::uint64_t requests = 0;
      if (!number(kLargest32, requests)) return false;
      read.requests_per_unit = static_cast<std::uint32_t>(requests);
      return true;
    };
    if (!message("RateLimitOverride", kLimitFields, field)) return false;
    if (read.unit == Unit::unknown) return refuse("limit: a unit is needed, SECOND … WEEK");
    batch_.descriptor().limit = read;
    return true;
  }

  bool unit(Unit& value) {
    if (is_null()) return reader_.read_null() || malformed();
    std::uint64_t index = kUnitNames.size();
    if (reader_.peek() == JsonType::string) {
      std::string_view name;
      if (!reader_.read_string(name)) return malformed();
      index = static_cast<std::uint64_t>(std::find(kUnitNames.begin(), kUnitNames.end(), name) - kUnitNames.begin());
    } else if (reader_.peek() == JsonType::number) {
      std::string_view token;
      if (!reader_.read_number(token)) return malformed();
      index = parse_proto_unsigned(token, kUnitNames.size() - 1).value_or(kUnitNames.size());
    }
    if (index >= kUnitNames.size()) {
      return refuse("unit: expected UNKNOWN, SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR");
    }
    value = static_cast<Unit>(index);
    return true;
  }

  /// Reads a message's members; `read` reads the value of the field with that bit.
  template <std::size_t N, typename ReadField>
  bool message(std::string_view type, const std::array<Field, N>& fields, ReadField read) {
    if (!expect(JsonType::object, type) || !reader_.begin_object()) return false;
    unsigned seen = 0;
    std::string_view name;
    while (reader_.next_member(name)) {
      const auto field = std::find_if(fields.begin(), fields.end(), [name](const Field& candidate) {
        return candidate.name == name || candidate.original == name;
      });
      if (field == fields.end()) return refuse("unknown field \"" + std::string(name) + "\" in " + std::string(type));
      if ((seen & field->bit) != 0) return refuse("field \"" + std::string(name) + "\" is given twice");
      seen |= field->bit;
      if (!read(field->bit)) return false;
    }
    return !reader_.failed() || malformed();
  }

  template <typename ReadElement>
  bool list(ReadElement read) {
    if (is_null()) return reader_.read_null() || malformed();
    if (!expect(JsonType::array, "an array") || !reader_.begin_array()) return false;
    while (reader_.next_element()) {
      if (!read()) return false;
    }
    return !reader_.failed() || malformed();
  }

  bool string(std::string_view& value) {
    if (is_null()) return reader_.read_null() || malformed();
    if (!expect(JsonType::string, "a string")) return false;
    return reader_.read_string(value) || malformed();
  }

  bool number(std::uint64_t most, std::uint64_t& value) {
    if (is_null()) return reader_.read_null() || malformed();
    std::string_view token;
    if (reader_.peek() == JsonType::string ? !reader_.read_string(token)
                                           : (!expect(JsonType::number, "a number") || !reader_.read_number(token))) {
      return fault_.message.empty() ? malformed() : false;
    }
    const auto parsed = parse_proto_unsigned(token, most);
    if (!parsed) return refuse("expected a whole number from 0 to " + std::to_string(most));
    value = *parsed;
    return true;
  }

  bool is_null() { return reader_.peek() == JsonType::null; }

  bool expect(JsonType type, std::string_view expected) {
    const JsonType found = reader_.peek();
    if (found == type) return true;
    return refuse("expected " + std::string(expected) + ", found " + std::string(describe(found)));
  }

  bool refuse(std::string_view what) {
    if (reader_.failed()) return malformed();
    fault_.code = "invalid_request";
    fault_.message = reader_.place() + ": ";
    fault_.message += what;
    return false;
  }

  bool malformed() {
    fault_.code = "invalid_json";
    fault_.message = reader_.place() + ": " + reader_.fault();
    return false;
  }

  JsonReader reader_;
  RequestBatch& batch_;
  DecodeFault& fault_;
};

/// Puts commas between members.
class Members {
 public:
  explicit Members(std::string& out) : out_(out) { out_ += '{'; }
  std::string& next(std::string_view name) {
    out_ += first_ ? "\"" : ",\"";
    first_ = false;
    out_ += name;
    out_ += "\":";
    return out_;
  }
  void end() { out_ += '}'; }

 private:
  std::string& out_;
  bool first_ = true;
};

void append_current_limit(const policy::Rule& rule, std::string& out) {
  Members members(out);
  if (!rule.name.empty()) append_json_string(members.next("name"), rule.name);
  if (rule.requests_per_unit != 0) append_unsigned(members.next("requestsPerUnit"), rule.requests_per_unit);
  if (rule.unit != Unit::unknown) {
    append_json_string(members.next("unit"), kUnitNames[static_cast<std::size_t>(rule.unit)]);
  }
  members.end();
}

/// A proto3 JSON Duration.
void append_whole_seconds(Wait wait, std::string& out) {
  out += '"';
  append_unsigned(out, static_cast<std::uint64_t>(wait.ceil_seconds()));
  out += "s\"";
}

void append_status(const limiter::Status& status, std::string& out) {
  Members members(out);
  members.next("code") += status.over_limit ? R"("OVER_LIMIT")" : R"("OK")";
  if (status.rule != nullptr && status.rule->unlimited) {
    append_unsigned(members.next("limitRemaining"), kLargest32);
  } else if (status.rule != nullptr && front::has_figures(status.decision)) {
    append_current_limit(*status.rule, members.next("currentLimit"));
    const std::uint64_t remaining = std::min<std::uint64_t>(status.decision.remaining, kLargest32);
    if (remaining != 0) append_unsigned(members.next("limitRemaining"), remaining);
    const Wait reset = front::until_reset(*status.rule, status.decision);
    if (!reset.is_never()) append_whole_seconds(reset, members.next("durationUntilReset"));
  }
  members.end();
}

}  // namespace

bool decode_rate_limit_request(std::string_view text, RequestBatch& batch, DecodeFault& fault) {
  fault = {};
  return RateLimitDecoder(text, batch, fault).decode();
}

void encode_rate_limit_response(const limiter::Answer& answer, const front::HeaderList& headers, std::string& out) {
  Members members(out);
  members.next("overallCode") += answer.allowed ? R"("OK")" : R"("OVER_LIMIT")";
  if (!answer.statuses.empty()) {
    members.next("statuses") += '[';
    for (std::size_t i = 0; i < answer.statuses.size(); ++i) {
      if (i != 0) out += ',';
      append_status(answer.statuses[i], out);
    }
    out += ']';
  }
  if (!headers.fields().empty()) {
    members.next("responseHeadersToAdd") += '[';
    bool first = true;
    for (const front::Header& field : headers.fields()) {
      if (!first) out += ',';
      first = false;
      Members header(out);
      append_json_string(header.next("key"), field.name);
      append_json_string(header.next("value"), field.value);
      header.end();
    }
    out += ']';
  }
  if (!answer.dynamic_metadata.empty()) members.next("dynamicMetadata") += answer.dynamic_metadata;
  members.end();
}

}  // namespace sluice::http
