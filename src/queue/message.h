// A request that waits, as it lies in a broker: the bytes and their meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::queue {

/// Key and value, in order.
using Pairs = std::vector<std::pair<std::string, std::string>>;

/// A descriptor as it is charged when the request is worked off.
struct MessageDescriptor {
  Pairs entries;
  std::optional<std::uint64_t> cost;
  friend bool operator==(const MessageDescriptor&, const MessageDescriptor&) = default;
};

/// A request with all that is needed to charge and to deliver it. A value.
struct Message {
  std::string ticket;           ///< 32 hexadecimal digits; also the idempotency key of each delivery
  std::int64_t created_us = 0;  ///< µs since 1970 UTC
  std::int64_t expires_us = 0;  ///< the same; 0: never
  std::string domain;
  std::vector<MessageDescriptor> descriptors;
  std::uint64_t cost = 1;
  std::string key;    ///< requests of one key are delivered in order; empty: in any
  std::string group;  ///< who shares the rate fairly: `key`, or else what was over its limit
  std::string method = "POST";
  std::string path = "/";
  Pairs headers;
  std::string body;
  std::string body_reference;  ///< where the body is, when it is not here
  std::string reason;          ///< of a dead letter
  std::uint32_t attempts = 0;  ///< of a dead letter
  friend bool operator==(const Message&, const Message&) = default;
};

/// What bytes in a broker turned out to be.
enum class Decoded : std::uint8_t {
  message,   ///< one of ours
  foreign,   ///< another program's: it lacks our mark
  poisoned,  ///< it has our mark but cannot be read
};

[[nodiscard]] std::string encode(const Message& message);
/// `reason`: what is wrong with what is poisoned. Takes any bytes; never throws but for want of memory.
[[nodiscard]] Decoded decode(std::string_view bytes, Message& message, std::string& reason);

/// What keeps the request itself (method, path, headers) from being sent; empty: nothing.
[[nodiscard]] std::string fault_of_request(const Message& message);

/// 128 random bits as 32 hexadecimal digits. Thread-safe.
[[nodiscard]] std::string new_ticket();
/// Has `text` the form of a ticket?
[[nodiscard]] bool is_ticket(std::string_view text);

}  // namespace sluice::queue
