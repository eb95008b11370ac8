#include <librdkafka/rdkafka.h>

#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>

#include "queue/bare.h"

namespace sluice::bench {
namespace {

using Steady = std::chrono::steady_clock;

struct ClientDeleter {
  void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
};
using Client = std::unique_ptr<rd_kafka_t, ClientDeleter>;

/// What the delivery reports are counted in.
struct Reports {
  std::size_t open = 0;
  std::size_t failed = 0;
  std::vector<double> latencies;
};

Client make_client(rd_kafka_type_t type, const std::vector<std::pair<const char*, std::string>>& properties,
                   Reports* reports) {
  std::array<char, 256> why{};
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf, name, value.c_str(), why.data(), why.size()) != RD_KAFKA_CONF_OK) {
      throw std::runtime_error(why.data());
    }
  }
  if (reports != nullptr) {
    rd_kafka_conf_set_opaque(conf, reports);
    rd_kafka_conf_set_dr_msg_cb(conf, [](rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
      auto& counted = *static_cast<Reports*>(opaque);
      const std::unique_ptr<Steady::time_point> begin(static_cast<Steady::time_point*>(message->_private));
      counted.latencies.push_back(std::chrono::duration<double, std::milli>(Steady::now() - *begin).count());
      --counted.open;
      if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) ++counted.failed;
    });
  }
  Client client(rd_kafka_new(type, conf, why.data(), why.size()));
  if (client == nullptr) throw std::runtime_error(why.data());
  return client;
}

}  // namespace

Loop publish_kafka(const config::QueueSettings& settings, const Load& load, std::size_t in_flight) {
  Reports reports;
  // As safe as the queue's own producer, and as eager.
  const Client client = make_client(RD_KAFKA_PRODUCER,
                                    {{"bootstrap.servers", settings.brokers},
                                     {"acks", "all"},
                                     {"enable.idempotence", "true"},
                                     {"linger.ms", "1"},
                                     {"partitioner", "murmur2_random"},
                                     {"log_level", "0"}},
                                    &reports);
  rd_kafka_topic_t* topic = rd_kafka_topic_new(client.get(), settings.topic.c_str(), nullptr);
  // Connects, so that the first of them need not.
  const rd_kafka_metadata_t* metadata = nullptr;
  if (rd_kafka_metadata(client.get(), 0, topic, &metadata, 30'000) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_metadata_destroy(metadata);
  }
  const auto begin = Steady::now();
  for (std::size_t i = 0; i < load.payloads.size(); ++i) {
    while (reports.open >= in_flight) rd_kafka_poll(client.get(), 10);
    auto at = std::make_unique<Steady::time_point>(Steady::now());
    const std::string& payload = load.payloads[i];
    ++reports.open;
    if (rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, const_cast<char*>(payload.data()),
                         payload.size(), load.keys[i].data(), load.keys[i].size(), at.release()) != 0) {
      throw std::runtime_error("a bare message was not taken");
    }
    rd_kafka_poll(client.get(), 0);
  }
  while (reports.open > 0) rd_kafka_poll(client.get(), 10);
  const double seconds = std::chrono::duration<double>(Steady::now() - begin).count();
  rd_kafka_topic_destroy(topic);
  if (reports.failed > 0) throw std::runtime_error("a bare message was not confirmed");
  return summary_of(std::move(reports.latencies), seconds);
}

Loop consume_kafka(const config::QueueSettings& settings, std::size_t count) {
  const Client client = make_client(RD_KAFKA_CONSUMER,
                                    {{"bootstrap.servers", settings.brokers},
                                     {"group.id", settings.group},
                                     {"enable.auto.commit", "true"},
                                     {"auto.commit.interval.ms", "500"},
                                     {"enable.auto.offset.store", "false"},
                                     {"auto.offset.reset", "earliest"},
                                     {"log_level", "0"}},
                                    nullptr);
  rd_kafka_poll_set_consumer(client.get());
  rd_kafka_topic_partition_list_t* topics = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(topics, settings.topic.c_str(), RD_KAFKA_PARTITION_UA);
  rd_kafka_subscribe(client.get(), topics);
  rd_kafka_topic_partition_list_destroy(topics);
  Steady::time_point begin;
  for (std::size_t taken = 0; taken < count;) {
    rd_kafka_message_t* message = rd_kafka_consumer_poll(client.get(), 1000);
    if (message == nullptr) continue;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      if (taken++ == 0) begin = Steady::now();
      (void)rd_kafka_offset_store(message->rkt, message->partition, message->offset);
    }
    rd_kafka_message_destroy(message);
  }
  const double seconds = std::chrono::duration<double>(Steady::now() - begin).count();
  rd_kafka_consumer_close(client.get());
  return {.per_second = static_cast<double>(count - 1) / seconds};
}

}  // namespace sluice::bench
