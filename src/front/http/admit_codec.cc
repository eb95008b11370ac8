#include "front/http/admit_codec.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "front/http/answer_json.h"
#include "front/http/json_text.h"

namespace sluice::http {
namespace {

constexpr std::array<std::string_view, 7> kMembers{"key",  "method",      "path",          "headers",
                                                   "body", "body_base64", "body_reference"};
constexpr std::size_t kMostHeaders = 100;
constexpr std::size_t kLongestKey = 1024;

/// May it stand in a request's head, in a line or (without spaces) in a word of it?
bool is_plain(std::string_view text, bool with_spaces) {
  return std::ranges::all_of(
      text, [with_spaces](char c) { return c == ' ' || c == '\t' ? with_spaces : (c < 0 || c > ' ') && c != 0x7f; });
}

bool is_token(std::string_view text) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [marks](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           marks.find(c) != std::string_view::npos;
  });
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.size() - std::min(text.size(), text.find_last_not_of('=') + 1);
  if (padding > 2) return std::nullopt;
  const bool plain = std::ranges::all_of(text.substr(0, text.size() - padding), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '/';
  });
  if (!plain) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(size) - padding);
  return bytes;
}

/// The members that a check does not have.
class RequestMembers final : public MoreMembers {
 public:
  explicit RequestMembers(queue::Message& message) : message_(message) {}

  [[nodiscard]] bool has(std::string_view name) const override {
    return std::ranges::find(kMembers, name) != kMembers.end();
  }
  [[nodiscard]] std::string_view told() const override {
    return "domain, descriptors, cost, key, method, path, headers, and one of body, body_base64 and body_reference";
  }

  bool read(std::string_view name, JsonReader& reader, std::string& what) override {
    if (name == "headers") return read_headers(reader, what);
    if (reader.peek() != JsonType::string) {
      what = "expected a string, found " + std::string(describe(reader.peek()));
      return false;
    }
    std::string_view value;
    if (!reader.read_string(value)) return false;
    what = keep(name, value);
    return what.empty();
  }

 private:
  std::string keep(std::string_view name, std::string_view value) {
    if (name == "key") {
      message_.key = value;
      return value.size() > kLongestKey ? "must not be longer than 1024 bytes" : "";
    }
    if (name == "method") {
      message_.method = value;
      return is_token(value) ? "" : "must be the name of a method";
    }
    if (name == "path") {
      message_.path = value;
      return value.starts_with('/') && is_plain(value, false)
                 ? ""
                 : "must begin with / and hold no spaces or control characters";
    }
    if (std::exchange(has_body_, true)) return "give one of body, body_base64 and body_reference";
    if (name == "body") message_.body = value;
    if (name == "body_reference") {
      message_.body_reference = value;
      return is_plain(value, true) ? "" : "must hold no control characters";
    }
    if (name == "body_base64") {
      auto bytes = from_base64(value);
      if (!bytes) return "must be base64 (RFC 4648 section 4)";
      message_.body = *std::move(bytes);
    }
    return "";
  }

  bool read_headers(JsonReader& reader, std::string& what) {
    if (reader.peek() != JsonType::object) {
      what = R"(expected an object: {"Content-Type": "text/plain", …}, found )" + std::string(describe(reader.peek()));
      return false;
    }
    if (!reader.begin_object()) return false;
    std::string_view name;
    while (reader.next_member(name)) {
      if (!is_token(name)) {
        what = "the name of a header is wrong";
        return false;
      }
      std::string kept(name);
      if (reader.peek() != JsonType::string) {
        what = "expected a string, found " + std::string(describe(reader.peek()));
        return false;
      }
      std::string_view value;
      if (!reader.read_string(value)) return false;
      if (!is_plain(value, true)) {
        what = "the value of " + kept + " must hold no control characters";
        return false;
      }
      if (message_.headers.size() >= kMostHeaders) {
        what = "at most 100 headers";
        return false;
      }
      message_.headers.emplace_back(std::move(kept), value);
    }
    return !reader.failed();
  }

  queue::Message& message_;
  bool has_body_ = false;
};

void take_check(RequestBatch& batch, queue::Message& message) {
  const Request& request = batch.requests().front();
  message.domain = request.domain;
  message.cost = request.cost;
  for (const Descriptor& descriptor : request.descriptors) {
    queue::MessageDescriptor& copy = message.descriptors.emplace_back();
    for (const Entry& entry : descriptor.entries) copy.entries.emplace_back(entry.key, entry.value);
    copy.cost = descriptor.cost;
  }
}

/// To the millisecond, rounded up.
void append_seconds_member(std::string& out, std::string_view name, std::chrono::nanoseconds time) {
  append_name(out, name);
  append_seconds(out, std::chrono::ceil<std::chrono::milliseconds>(time));
}

void append_count(std::string& out, std::string_view name, std::uint64_t count) {
  append_name(out, name);
  append_unsigned(out, count);
}

void append_text(std::string& out, std::string_view name, std::string_view text) {
  append_name(out, name);
  append_json_string(out, text);
}

void append_rate(std::string& out, std::string_view name, double rate) {
  append_name(out, name);
  append_seconds(out, std::chrono::milliseconds(static_cast<std::int64_t>(std::llround(rate * 1e3))));
}

void append_queue(const queue::QueueFigures& queue, std::string& out) {
  out += "{\"queue\":";
  append_json_string(out, queue.name);
  append_text(out, "type", queue.type);
  append_name(out, "ready");
  out += queue.ready ? "true" : "false";
  if (!queue.ready) append_text(out, "problem", queue.problem);
  append_name(out, "length");
  if (queue.length) {
    append_unsigned(out, *queue.length);
  } else {
    out += "null";
  }
  if (queue.oldest) append_seconds_member(out, "oldest", *queue.oldest);
  append_rate(out, "in_per_second", queue.rate_in);
  append_rate(out, "out_per_second", queue.rate_out);
  if (queue.eta) append_seconds_member(out, "empty_in", *queue.eta);
  append_count(out, "stored", queue.stored);
  append_count(out, "refused", queue.refused);
  append_count(out, "unconfirmed", queue.failed);
  append_count(out, "drainers", queue.drained.drainers);
  append_count(out, "in_hand", queue.drained.held);
  append_count(out, "delivered", queue.drained.delivered);
  append_count(out, "duplicates", queue.drained.duplicates);
  append_count(out, "dead", queue.drained.dead);
  append_count(out, "expired", queue.drained.expired);
  append_count(out, "foreign", queue.drained.foreign);
  out += '}';
}

}  // namespace

bool decode_admit(std::string_view text, RequestBatch& batch, queue::Message& message, DecodeFault& fault) {
  message = queue::Message();
  RequestMembers members(message);
  if (!decode_check_with(text, members, batch, fault)) return false;
  take_check(batch, message);
  return true;
}

void encode_ticket(std::string_view id, const queue::Ticket& ticket, std::int64_t now_us, std::string& out) {
  using std::chrono::microseconds;
  out += "{\"ticket\":";
  append_json_string(out, id);
  append_text(out, "queue", ticket.queue);
  append_text(out, "state", queue::to_text(ticket.state));
  append_seconds_member(out, "age", microseconds(std::max<std::int64_t>(now_us - ticket.created_us, 0)));
  if (ticket.state == queue::TicketState::queued) {
    append_count(out, "place", ticket.place);
    append_seconds_member(out, "expected_in", microseconds(std::max<std::int64_t>(ticket.expected_us - now_us, 0)));
  }
  append_count(out, "attempts", ticket.attempts);
  if (ticket.status > 0) append_count(out, "status", static_cast<std::uint64_t>(ticket.status));
  if (!ticket.reason.empty()) append_text(out, "reason", ticket.reason);
  out += '}';
}

void encode_queues(std::span<const queue::QueueFigures> queues, std::string& out) {
  out += "{\"queues\":[";
  for (const queue::QueueFigures& queue : queues) {
    if (out.back() != '[') out += ',';
    append_queue(queue, out);
  }
  out += "]}";
}

}  // namespace sluice::http
