// What this project uses of librdkafka: handles that free themselves, and errors as text.
#pragma once

#include <librdkafka/rdkafka.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sluice::queue::kafka {

struct HandleDeleter {
  void operator()(rd_kafka_t* handle) const { rd_kafka_destroy(handle); }
};
using Handle = std::unique_ptr<rd_kafka_t, HandleDeleter>;

/// librdkafka does not end a client while lists of its partitions are alive.
struct PartitionsDeleter {
  void operator()(rd_kafka_topic_partition_list_t* list) const { rd_kafka_topic_partition_list_destroy(list); }
};
using Partitions = std::unique_ptr<rd_kafka_topic_partition_list_t, PartitionsDeleter>;

struct ConfDeleter {
  void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
};
using Conf = std::unique_ptr<rd_kafka_conf_t, ConfDeleter>;

struct MessageDeleter {
  void operator()(rd_kafka_message_t* message) const { rd_kafka_message_destroy(message); }
};
using FetchedMessage = std::unique_ptr<rd_kafka_message_t, MessageDeleter>;

/// Name and value of librdkafka's settings, later ones winning.
using Properties = std::vector<std::pair<std::string, std::string>>;

/// A configuration of `own` over `given`. The error names the setting.
[[nodiscard]] Result<Conf> make_conf(const std::map<std::string, std::string>& given, const Properties& own);
/// Takes over the configuration.
[[nodiscard]] Result<Handle> make_client(rd_kafka_type_t type, Conf conf);

}  // namespace sluice::queue::kafka
