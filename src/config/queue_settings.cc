#include "config/queue_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/duration.h"
#include "base/suggest.h"
#include "config/settings.h"

namespace sluice::config {
namespace {

using Kind = QueueSettings::Kind;
using std::chrono::nanoseconds;

constexpr std::uint64_t kMostQueues = 100;
constexpr std::size_t kLongestName = 100;
constexpr std::uint64_t kMostWaiting = 100'000'000;
constexpr std::uint64_t kMostLanes = 64;
constexpr std::uint64_t kMostPrefetch = 10'000;

struct KnownKey {
  std::string_view name;
  std::optional<Kind> kind;  // nothing: of all
};

constexpr std::array kKeys{
    KnownKey{"type", std::nullopt},
    KnownKey{"timeout", std::nullopt},
    KnownKey{"stored_headers", std::nullopt},
    KnownKey{"dead_letter", std::nullopt},
    KnownKey{"max_length", Kind::memory},
    KnownKey{"deliver", Kind::memory},
    KnownKey{"ca", Kind::memory},
    KnownKey{"brokers", Kind::kafka},
    KnownKey{"topic", Kind::kafka},
    KnownKey{"group", Kind::kafka},
    KnownKey{"properties", Kind::kafka},
    KnownKey{"url", Kind::rabbitmq},
    KnownKey{"queue", Kind::rabbitmq},
    KnownKey{"lanes", Kind::rabbitmq},
    KnownKey{"prefetch", Kind::rabbitmq},
    KnownKey{"consumer_timeout", Kind::rabbitmq},
    KnownKey{"ca", Kind::rabbitmq},
    KnownKey{"certificate", Kind::rabbitmq},
    KnownKey{"key", Kind::rabbitmq},
};

constexpr std::array<std::string_view, 3> kKinds{"memory", "kafka", "rabbitmq"};

/// What librdkafka is told by this program, as the order and safety of messages rest on it.
constexpr std::array<std::string_view, 9> kOwnProperties{
    "bootstrap.servers",        "group.id",           "acks",        "request.required.acks", "enable.idempotence",
    "enable.auto.offset.store", "enable.auto.commit", "partitioner", "message.timeout.ms"};

std::string_view name_of(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

class QueueReader {
 public:
  QueueReader(const yaml::Node& map, const std::string& file, std::string name, bool needs_deliver,
              std::vector<std::string>& errors)
      : map_(map), file_(file), needs_deliver_(needs_deliver), errors_(errors) {
    queue_.name = std::move(name);
  }

  std::optional<QueueSettings> read() {
    const std::size_t before = errors_.size();
    collect();
    read_kind();
    if (errors_.size() == before) read_values();
    if (errors_.size() != before) return std::nullopt;
    return std::move(queue_);
  }

 private:
  void error(yaml::Position position, const std::string& message) {
    errors_.push_back(file_ + ":" + std::to_string(position.line) + ":" + std::to_string(position.column) +
                      ": queues." + queue_.name + message);
  }

  void collect() {
    for (std::size_t i = 0; i < map_.keys.size(); ++i) {
      const yaml::Node& key = *map_.keys[i];
      if (key.kind != yaml::Node::Kind::scalar) {
        error(key.position, ": expected the name of a setting");
      } else if (!fields_.emplace(key.text, map_.values[i]).second) {
        error(key.position, "." + key.text + " is set twice");
      }
    }
  }

  [[nodiscard]] const yaml::Node* find(std::string_view name) const {
    const auto found = fields_.find(std::string(name));
    return found == fields_.end() || found->second->kind == yaml::Node::Kind::null ? nullptr : found->second;
  }

  void read_kind() {
    const auto word = text("type");
    const auto* const kind = word ? std::ranges::find(kKinds, *word) : kKinds.end();
    if (kind == kKinds.end()) {
      const yaml::Node* node = find("type");
      if (node != nullptr && !word) return;  // told already
      const std::string_view meant = word ? nearest(*word, kKinds) : std::string_view();
      error(node == nullptr ? map_.position : node->position,
            ".type: expected memory, kafka or rabbitmq, found " + (word ? "'" + *word + "'" : "none") +
                (meant.empty() ? "" : "; did you mean " + std::string(meant) + "?"));
      return;
    }
    queue_.kind = static_cast<Kind>(kind - kKinds.begin());
    for (std::size_t i = 0; i < map_.keys.size(); ++i) check_name(*map_.keys[i]);
  }

  void check_name(const yaml::Node& key) {
    const auto is_right = [&](const KnownKey& one) {
      return one.name == key.text && (!one.kind || *one.kind == queue_.kind);
    };
    if (std::ranges::any_of(kKeys, is_right)) return;
    const auto* const known = std::ranges::find(kKeys, key.text, &KnownKey::name);
    if (known == kKeys.end()) {
      std::vector<std::string_view> names;
      for (const KnownKey& one : kKeys) {
        if (!one.kind || *one.kind == queue_.kind) names.push_back(one.name);
      }
      const std::string_view meant = nearest(key.text, names);
      error(key.position,
            ": unknown setting '" + key.text + "'" +
                (meant.empty() ? "; docs/overflow.md lists all" : "; did you mean '" + std::string(meant) + "'?"));
    } else {
      error(key.position, "." + key.text + ": a queue of type " + std::string(name_of(queue_.kind)) +
                              " has no use for it; it belongs to " + std::string(name_of(*known->kind)));
    }
  }

  std::optional<std::string> text(std::string_view name) {
    const yaml::Node* node = find(name);
    if (node == nullptr) return std::nullopt;
    if (node->kind == yaml::Node::Kind::scalar) return node->text;
    error(node->position, "." + std::string(name) + ": expected a text");
    return std::nullopt;
  }

  void read_text(std::string_view name, std::string& value) {
    if (auto found = text(name)) value = *std::move(found);
  }

  void read_path(std::string_view name, std::string& value) {
    if (const auto found = text(name); found && !found->empty()) {
      value = (std::filesystem::path(file_).parent_path() / *found).string();
    }
  }

  void read_number(std::string_view name, std::uint64_t least, std::uint64_t most, std::uint64_t& value) {
    const auto found = text(name);
    if (!found) return;
    std::uint64_t number = 0;
    const auto [end, failed] = std::from_chars(found->data(), found->data() + found->size(), number);
    if (failed == std::errc{} && end == found->data() + found->size() && number >= least && number <= most) {
      value = number;
      return;
    }
    error(find(name)->position, "." + std::string(name) + ": expected a whole number of " + std::to_string(least) +
                                    " to " + std::to_string(most) + ", found '" + *found + "'");
  }

  void read_duration(std::string_view name, nanoseconds least, nanoseconds most, nanoseconds& value) {
    const auto found = text(name);
    if (!found) return;
    const auto duration = parse_duration(*found);
    if (duration && *duration >= least && *duration <= most) {
      value = *duration;
      return;
    }
    error(find(name)->position, "." + std::string(name) + ": " +
                                    (duration ? "expected " + sluice::to_text(least) + " to " + sluice::to_text(most) +
                                                    ", found '" + *found + "'"
                                              : duration.error().message));
  }

  void read_list(std::string_view name, std::vector<std::string>& values) {
    const yaml::Node* node = find(name);
    if (node == nullptr) return;
    std::vector<const yaml::Node*> items{node};
    if (node->kind == yaml::Node::Kind::sequence) items = node->values;
    for (const yaml::Node* item : items) {
      if (item->kind == yaml::Node::Kind::scalar && !item->text.empty()) {
        values.push_back(item->text);
      } else {
        error(item->position, "." + std::string(name) + ": expected a list of texts");
      }
    }
  }

  void read_properties() {
    const yaml::Node* node = find("properties");
    if (node == nullptr) return;
    if (node->kind != yaml::Node::Kind::map) {
      error(node->position, ".properties: expected settings of librdkafka as 'name: value'");
      return;
    }
    for (std::size_t i = 0; i < node->keys.size(); ++i) {
      const yaml::Node& key = *node->keys[i];
      const yaml::Node& value = *node->values[i];
      if (key.kind != yaml::Node::Kind::scalar || value.kind != yaml::Node::Kind::scalar) {
        error(key.position, ".properties: expected settings of librdkafka as 'name: value'");
      } else if (std::ranges::find(kOwnProperties, key.text) != kOwnProperties.end()) {
        error(key.position, ".properties." + key.text + ": Sluice sets this one itself; remove it");
      } else {
        queue_.properties[key.text] = value.text;
      }
    }
  }

  void need(std::string_view name, const std::string& value, std::string_view example) {
    if (!value.empty() || find(name) != nullptr) return;
    error(map_.position, ": a queue of type " + std::string(name_of(queue_.kind)) + " needs '" + std::string(name) +
                             "', such as " + std::string(example));
  }

  void read_values() {
    read_duration("timeout", std::chrono::milliseconds(100), std::chrono::minutes(5), queue_.timeout);
    read_list("stored_headers", queue_.stored_headers);
    for (std::string& header : queue_.stored_headers) header = lower(std::move(header));
    read_text("dead_letter", queue_.dead_letter);
    switch (queue_.kind) {
      case Kind::memory:
        read_number("max_length", 1, kMostWaiting, queue_.max_length);
        read_text("deliver", queue_.deliver);
        if (needs_deliver_) need("deliver", queue_.deliver, "http://127.0.0.1:9000");
        read_path("ca", queue_.ca);
        check_scheme("deliver", queue_.deliver, {"http://", "https://"});
        break;
      case Kind::kafka:
        read_kafka();
        break;
      case Kind::rabbitmq:
        read_rabbitmq();
        break;
    }
  }

  void read_kafka() {
    std::vector<std::string> brokers;
    read_list("brokers", brokers);
    for (const std::string& broker : brokers) queue_.brokers += (queue_.brokers.empty() ? "" : ",") + broker;
    need("brokers", queue_.brokers, "[127.0.0.1:9092]");
    read_text("topic", queue_.topic);
    if (queue_.topic.empty()) queue_.topic = queue_.name;
    read_text("group", queue_.group);
    if (queue_.group.empty()) queue_.group = "sluice-" + queue_.topic;
    if (queue_.dead_letter.empty()) queue_.dead_letter = queue_.topic + ".dead";
    read_properties();
  }

  void read_rabbitmq() {
    read_text("url", queue_.url);
    need("url", queue_.url, "amqp://127.0.0.1:5672");
    check_scheme("url", queue_.url, {"amqp://", "amqps://"});
    read_text("queue", queue_.queue);
    if (queue_.queue.empty()) queue_.queue = queue_.name;
    if (queue_.dead_letter.empty()) queue_.dead_letter = queue_.queue + ".dead";
    read_number("lanes", 1, kMostLanes, queue_.lanes);
    read_number("prefetch", 1, kMostPrefetch, queue_.prefetch);
    read_duration("consumer_timeout", std::chrono::seconds(10), std::chrono::hours(24), queue_.consumer_timeout);
    read_path("ca", queue_.ca);
    read_path("certificate", queue_.certificate);
    read_path("key", queue_.key);
  }

  void check_scheme(std::string_view name, const std::string& url, std::initializer_list<std::string_view> schemes) {
    if (find(name) == nullptr) return;
    std::string expected;
    for (const std::string_view scheme : schemes) {
      if (url.starts_with(scheme)) return;
      expected += (expected.empty() ? "" : " or ") + std::string(scheme) + "…";
    }
    error(find(name)->position,
          "." + std::string(name) + ": expected " + expected + ", found '" + without_password(url) + "'");
  }

  const yaml::Node& map_;
  const std::string& file_;
  const bool needs_deliver_;
  std::vector<std::string>& errors_;
  std::map<std::string, const yaml::Node*> fields_;
  QueueSettings queue_;
};

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

QueuesText read_queues(const yaml::Node& node, const std::string& file, bool needs_deliver) {
  QueuesText result;
  const auto error = [&](yaml::Position position, const std::string& message) {
    result.errors.push_back(file + ":" + std::to_string(position.line) + ":" + std::to_string(position.column) + ": " +
                            message);
  };
  if (node.kind == yaml::Node::Kind::null) return result;
  if (node.kind != yaml::Node::Kind::map) {
    error(node.position, "queues: expected queues as 'name: {type: …}'");
    return result;
  }
  if (node.keys.size() > kMostQueues) {
    error(node.position,
          "queues: expected at most " + std::to_string(kMostQueues) + ", found " + std::to_string(node.keys.size()));
    return result;
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const yaml::Node& key = *node.keys[i];
    const yaml::Node& value = *node.values[i];
    if (key.kind != yaml::Node::Kind::scalar || !is_name(key.text)) {
      error(key.position, "queues: the name of a queue is 1 to 100 letters, digits, '_' and '-'");
    } else if (!seen.insert(key.text).second) {
      error(key.position, "queues." + key.text + " is there twice");
    } else if (value.kind != yaml::Node::Kind::map) {
      error(value.position, "queues." + key.text + ": expected its settings as 'name: value'");
    } else if (auto queue = QueueReader(value, file, key.text, needs_deliver, result.errors).read()) {
      result.queues.push_back(*std::move(queue));
    }
  }
  return result;
}

std::string to_text(const QueueSettings& queue) {
  switch (queue.kind) {
    case Kind::kafka:
      return queue.name + " (kafka " + queue.brokers + ", topic " + queue.topic + ")";
    case Kind::rabbitmq:
      return queue.name + " (rabbitmq " + without_password(queue.url) + ", queue " + queue.queue + ")";
    case Kind::memory:
      break;
  }
  return queue.name + " (memory, at most " + std::to_string(queue.max_length) + ")";
}

}  // namespace sluice::config
