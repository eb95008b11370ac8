// `queues:` of the server file: where requests beyond a limit may wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "yaml/tree.h"

namespace sluice::config {

/// One queue. A value. Defaults and bounds: docs/overflow.md.
struct QueueSettings {
  enum class Kind : std::uint8_t { memory, kafka, rabbitmq };

  std::string name;
  Kind kind = Kind::memory;
  std::chrono::nanoseconds timeout = std::chrono::seconds(5);  ///< until the broker has confirmed, else it is refused
  std::vector<std::string> stored_headers;  ///< in lower case: of those that hold secrets, which are kept all the same

  // memory
  std::uint64_t max_length = 10'000;
  std::string deliver;  ///< http[s]://…: where this process itself delivers to

  // kafka
  std::string brokers;
  std::string topic;
  std::string group;
  std::map<std::string, std::string> properties;  ///< of librdkafka, handed through

  // rabbitmq
  std::string url;  ///< amqp[s]://[user:password@]host[:port][/vhost]
  std::string queue;
  std::uint64_t lanes = 8;                                               ///< queues that the keys are spread over
  std::uint64_t prefetch = 500;                                          ///< most messages unacknowledged, a lane
  std::chrono::nanoseconds consumer_timeout = std::chrono::minutes(30);  ///< the server's setting of that name
  std::string ca;  ///< memory, too: of whom to trust behind https://
  std::string certificate;
  std::string key;

  std::string dead_letter;  ///< topic or queue for what cannot be delivered
};

/// What the file says, with one line for each mistake, beginning with its place.
struct QueuesText {
  std::vector<QueueSettings> queues;
  std::vector<std::string> errors;
};

/// Reads the value of `queues`. `file` is for messages. `needs_deliver`: must one in memory say where it delivers to?
/// Never throws.
[[nodiscard]] QueuesText read_queues(const yaml::Node& node, const std::string& file, bool needs_deliver = true);

/// "orders (kafka 127.0.0.1:9092, topic orders)": never a password.
[[nodiscard]] std::string to_text(const QueueSettings& queue);

}  // namespace sluice::config
