#include "front/http/throttle_codec.h"

#include <array>
#include <span>
#include <string>
#include <utility>

#include "front/http/json_reader.h"
#include "front/http/json_text.h"

namespace sluice::http {
namespace {

constexpr unsigned kOk = 200;
constexpr unsigned kBadRequest = 400;
constexpr unsigned kUnprocessable = 422;

/// In the order of the command's arguments.
constexpr std::array<std::string_view, 5> kMembers{"key", "max_burst", "count_per_period", "period", "quantity"};

void append_seconds_or_never(const Wait& wait, std::string& out) {
  if (wait.is_never()) {
    out += "-1";
  } else {
    append_unsigned(out, static_cast<std::uint64_t>(wait.ceil_seconds()));
  }
}

class Decoder {
 public:
  Decoder(std::string_view text, std::string& arena, std::string& fault) : reader_(text, arena), fault_(fault) {}

  unsigned decode(resp::Throttle& throttle) {
    const JsonType whole = reader_.peek();
    if (whole != JsonType::object) {
      if (!reader_.skip_value() || !reader_.finish()) return malformed("expected an object");
      return unprocessable("expected an object, found " + std::string(describe(whole)));
    }
    if (!reader_.begin_object()) return malformed("");
    std::string_view name;
    while (reader_.next_member(name)) {
      if (const unsigned status = read_member(name); status != kOk) return status;
    }
    if (reader_.failed() || !reader_.finish()) return malformed("");
    std::array<std::string_view, 1 + kMembers.size()> arguments{"throttle"};
    std::size_t count = 1;
    for (std::size_t i = 0; i < kMembers.size(); ++i) {
      if (!values_[i].data()) {
        if (kMembers[i] == "quantity") break;
        return unprocessable("missing field `" + std::string(kMembers[i]) + "`");
      }
      arguments[count++] = values_[i];
    }
    auto read = resp::read_throttle(std::span(arguments).first(count));
    if (!read) {
      fault_ = read.error().message;
      return kBadRequest;
    }
    throttle = *std::move(read);
    return kOk;
  }

 private:
  unsigned read_member(std::string_view name) {
    for (std::size_t i = 0; i < kMembers.size(); ++i) {
      if (kMembers[i] != name) continue;
      if (std::exchange(is_given_[i], true)) return unprocessable("duplicate field `" + std::string(name) + "`");
      const JsonType type = reader_.peek();
      if (kMembers[i] == "quantity" && type == JsonType::null) return reader_.read_null() ? kOk : malformed("");
      const JsonType expected = i == 0 ? JsonType::string : JsonType::number;
      if (type == JsonType::none) return malformed("");
      if (type != expected) {
        return unprocessable(std::string(name) + ": expected " + std::string(describe(expected)) + ", found " +
                             std::string(describe(type)));
      }
      if (!(i == 0 ? reader_.read_string(values_[i]) : reader_.read_number(values_[i]))) return malformed("");
      if (i == 0) return kOk;
      const auto number = resp::read_integer(values_[i], name);
      return number ? kOk : unprocessable(number.error().message);
    }
    return reader_.skip_value() ? kOk : malformed("");
  }

  unsigned unprocessable(std::string what) {
    fault_ = std::move(what);
    return kUnprocessable;
  }

  unsigned malformed(std::string_view what) {
    fault_ = reader_.place() + ": " + (reader_.failed() ? reader_.fault() : std::string(what));
    return kBadRequest;
  }

  JsonReader reader_;
  std::string& fault_;
  std::array<std::string_view, kMembers.size()> values_;  ///< null: not there
  std::array<bool, kMembers.size()> is_given_{};
};

}  // namespace

unsigned decode_throttle(std::string_view text, resp::Throttle& throttle, std::string& arena, std::string& fault) {
  return Decoder(text, arena, fault).decode(throttle);
}

void encode_throttle(const Decision& decision, std::string& out) {
  out += decision.allowed ? R"({"allowed":true,"limit":)" : R"({"allowed":false,"limit":)";
  append_unsigned(out, decision.limit);
  out += R"(,"remaining":)";
  append_unsigned(out, decision.remaining);
  out += R"(,"reset_after":)";
  append_seconds_or_never(decision.reset_after, out);
  out += R"(,"retry_after":)";
  append_seconds_or_never(decision.allowed ? Wait() : decision.retry_after, out);
  out += '}';
}

}  // namespace sluice::http
