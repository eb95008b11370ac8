#include "queue/kafka_broker.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "queue/kafka_client.h"
#include "queue/kafka_consumer.h"

namespace sluice::queue {
namespace {

using namespace std::chrono_literals;

constexpr int kAskPatience = 2000;  // ms, of one question about the topic
constexpr auto kAskInterval = 500ms;

using config::QueueSettings;

/// The length of a queue as the broker tells it: per partition, from what the group has committed to the end.
class LengthAsker {
 public:
  LengthAsker(kafka::Handle handle, std::string topic) : handle_(std::move(handle)), topic_(std::move(topic)) {}

  Result<std::uint64_t> ask() {
    const int partitions = count_partitions(topic_);
    if (partitions <= 0) return Error{problem_};
    const kafka::Partitions list(rd_kafka_topic_partition_list_new(partitions));
    for (int i = 0; i < partitions; ++i) rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), i);
    if (const auto error = rd_kafka_committed(handle_.get(), list.get(), kAskPatience);
        error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return Error{rd_kafka_err2str(error)};
    }
    std::uint64_t length = 0;
    for (int i = 0; i < partitions; ++i) {
      std::int64_t low = 0;
      std::int64_t high = 0;
      if (const auto error =
              rd_kafka_query_watermark_offsets(handle_.get(), topic_.c_str(), i, &low, &high, kAskPatience);
          error != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return Error{rd_kafka_err2str(error)};
      }
      const std::int64_t from = std::max(low, list->elems[i].offset);
      if (high > from) length += static_cast<std::uint64_t>(high - from);
    }
    return length;
  }

  /// What is wrong with another topic; empty: nothing.
  std::string problem_of(const std::string& topic) { return count_partitions(topic) > 0 ? "" : problem_; }

 private:
  int count_partitions(const std::string& name) {
    const rd_kafka_metadata_t* metadata = nullptr;
    rd_kafka_topic_t* topic = rd_kafka_topic_new(handle_.get(), name.c_str(), nullptr);
    auto error = rd_kafka_metadata(handle_.get(), 0, topic, &metadata, kAskPatience);
    rd_kafka_topic_destroy(topic);
    int count = 0;
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
      if (metadata->topic_cnt == 1) {
        error = metadata->topics[0].err;
        count = metadata->topics[0].partition_cnt;
      }
      rd_kafka_metadata_destroy(metadata);
    }
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      problem_ = "topic " + name + ": " + rd_kafka_err2str(error);
      return 0;
    }
    if (count == 0) problem_ = "topic " + name + " has no partitions";
    return count;
  }

  kafka::Handle handle_;
  std::string topic_;
  std::string problem_;
};

class KafkaBroker final : public Broker {
 public:
  explicit KafkaBroker(QueueSettings settings) : settings_(std::move(settings)) {}
  KafkaBroker(const KafkaBroker&) = delete;
  KafkaBroker& operator=(const KafkaBroker&) = delete;
  ~KafkaBroker() override { stop(); }

  void set_up(kafka::Conf& conf) {
    rd_kafka_conf_set_opaque(conf.get(), this);
    rd_kafka_conf_set_error_cb(conf.get(), [](rd_kafka_t* /*handle*/, int error, const char* why, void* self) {
      static_cast<KafkaBroker*>(self)->note(static_cast<rd_kafka_resp_err_t>(error), why);
    });
    rd_kafka_conf_set_dr_msg_cb(conf.get(), [](rd_kafka_t* /*handle*/, const rd_kafka_message_t* message,
                                               void* /*opaque*/) { settle(*message); });
  }

  void start(kafka::Handle producer, LengthAsker asker) {
    producer_ = std::move(producer);
    poller_ = std::thread([this] {
      while (!stopping_) rd_kafka_poll(producer_.get(), 100);
    });
    keeper_ = std::thread([this, asker = std::move(asker)]() mutable { keep(asker); });
  }

  void publish(Publish what, Done done) override {
    auto waiting = std::make_unique<Waiting>(Waiting{*this, std::move(done)});
    if (stopping_) {
      waiting->done(false, "the queue is being closed");
      return;
    }
    pending_.fetch_add(1);
    const std::string& topic = what.dead ? settings_.dead_letter : settings_.topic;
    std::array<rd_kafka_vu_t, 8> parts{};
    std::size_t count = 0;
    const auto add = [&](rd_kafka_vtype_t type) -> rd_kafka_vu_t& {
      parts.at(count).vtype = type;
      return parts.at(count++);
    };
    add(RD_KAFKA_VTYPE_TOPIC).u.cstr = topic.c_str();
    add(RD_KAFKA_VTYPE_MSGFLAGS).u.i = RD_KAFKA_MSG_F_COPY;
    auto& value = add(RD_KAFKA_VTYPE_VALUE).u.mem;
    value.ptr = what.payload.data();
    value.size = what.payload.size();
    if (!what.spread.empty()) {
      auto& key = add(RD_KAFKA_VTYPE_KEY).u.mem;
      key.ptr = what.spread.data();
      key.size = what.spread.size();
    }
    if (!what.reason.empty()) {
      auto& header = add(RD_KAFKA_VTYPE_HEADER).u.header;
      header.name = "sluice-reason";
      header.val = what.reason.data();
      header.size = static_cast<ssize_t>(what.reason.size());
    }
    add(RD_KAFKA_VTYPE_OPAQUE).u.ptr = waiting.get();
    rd_kafka_error_t* error = rd_kafka_produceva(producer_.get(), parts.data(), count);
    if (error == nullptr) {
      std::ignore = waiting.release();  // until its report
      return;
    }
    const std::string why = rd_kafka_error_string(error);
    rd_kafka_error_destroy(error);
    pending_.fetch_sub(1);
    failed_.fetch_add(1);
    waiting->done(false, why);
  }

  std::unique_ptr<Consumer> consume(const ConsumerOptions& options) override {
    auto consumer = make_kafka_consumer(settings_, options);
    if (!consumer) throw std::runtime_error("queue " + settings_.name + ": " + consumer.error().message);
    return *std::move(consumer);
  }

  BrokerFigures figures() const override {
    const std::scoped_lock lock(mutex_);
    std::optional<std::uint64_t> length = length_;
    if (length) *length += published_ - published_then_;
    return {.up = problem_.empty(),
            .problem = problem_,
            .length = length,
            .most = std::nullopt,
            .counts_held = true,
            .published = published_,
            .failed = failed_,
            .pending = pending_};
  }

  void stop() override {
    if (!poller_.joinable()) return;
    // What has not been confirmed within its time is reported as failed, so this ends.
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(settings_.timeout) + 1s;
    (void)rd_kafka_flush(producer_.get(), static_cast<int>(patience.count()));
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    poller_.join();
    keeper_.join();
    (void)rd_kafka_purge(producer_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    while (rd_kafka_poll(producer_.get(), 0) > 0) {
    }
  }

 private:
  struct Waiting {
    KafkaBroker& broker;
    Done done;
  };

  static void settle(const rd_kafka_message_t& message) {
    const std::unique_ptr<Waiting> waiting(static_cast<Waiting*>(message._private));
    KafkaBroker& broker = waiting->broker;
    broker.pending_.fetch_sub(1);
    if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      broker.published_.fetch_add(1);
      waiting->done(true, {});
    } else {
      broker.failed_.fetch_add(1);
      waiting->done(false, rd_kafka_err2str(message.err));
    }
  }

  /// What a connection failed by, which questions don't tell: a password, TLS, a name. It has addresses, so it is for
  /// the log alone.
  void note(rd_kafka_resp_err_t error, const char* why) {
    if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) return;
    const std::scoped_lock lock(mutex_);
    const bool is_late = failure_.empty() && !problem_.empty() && told_;
    failure_ = why;
    if (is_late) log::warn("queue is not ready", {{"queue", settings_.name}, {"reason", failure_}});
  }

  void keep(LengthAsker& asker) {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      lock.unlock();
      const std::uint64_t published = published_;
      const auto length = asker.ask();
      if (length && !std::exchange(asked_dead_, true)) ask_for_dead_letters(asker);
      lock.lock();
      if (length) {
        if (!std::exchange(problem_, "").empty()) log::info("queue is ready", {{"queue", settings_.name}});
        length_ = *length;
        published_then_ = published;
        failure_.clear();
      } else if (std::exchange(problem_, length.error().message).empty() || !told_) {
        told_ = true;
        const std::string more = failure_.empty() ? "" : "; " + failure_;
        log::warn("queue is not ready", {{"queue", settings_.name}, {"reason", problem_ + more}});
      }
      wake_.wait_for(lock, kAskInterval, [this] { return stopping_.load(); });
    }
  }

  /// Once: a broker may make the topic by itself when it is needed.
  void ask_for_dead_letters(LengthAsker& asker) const {
    const std::string problem = asker.problem_of(settings_.dead_letter);
    if (problem.empty()) return;
    log::warn("dead letters may have no place: without it what cannot be delivered holds up what is behind it",
              {{"queue", settings_.name}, {"reason", problem}});
  }

  const QueueSettings settings_;
  kafka::Handle producer_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> published_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<std::uint64_t> pending_{0};
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::string problem_ = "not connected yet";
  std::string failure_;  ///< the last that the library told since the length was known
  std::optional<std::uint64_t> length_;
  std::uint64_t published_then_ = 0;  ///< when the length was asked for
  bool told_ = false;
  bool asked_dead_ = false;  ///< of the keeper
  std::thread poller_;
  std::thread keeper_;
};

}  // namespace

Result<std::unique_ptr<Broker>> make_kafka_broker(const QueueSettings& settings) {
  const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(settings.timeout).count();
  auto conf = kafka::make_conf(settings.properties, {{"bootstrap.servers", settings.brokers},
                                                     {"acks", "all"},
                                                     {"enable.idempotence", "true"},
                                                     {"message.timeout.ms", std::to_string(timeout)},
                                                     {"linger.ms", "1"},
                                                     {"partitioner", "murmur2_random"},
                                                     {"queue.buffering.max.messages", "100000"},
                                                     {"reconnect.backoff.max.ms", "1000"},
                                                     {"log_level", "0"}});
  if (!conf) return conf.error();
  auto broker = std::make_unique<KafkaBroker>(settings);
  broker->set_up(*conf);
  auto producer = kafka::make_client(RD_KAFKA_PRODUCER, *std::move(conf));
  if (!producer) return producer.error();
  auto asking = kafka::make_conf(settings.properties, {{"bootstrap.servers", settings.brokers},
                                                       {"group.id", settings.group},
                                                       {"enable.auto.commit", "false"},
                                                       {"reconnect.backoff.max.ms", "1000"},
                                                       {"log_level", "0"}});
  if (!asking) return asking.error();
  auto asker = kafka::make_client(RD_KAFKA_CONSUMER, *std::move(asking));
  if (!asker) return asker.error();
  broker->start(*std::move(producer), LengthAsker(*std::move(asker), settings.topic));
  return std::unique_ptr<Broker>(std::move(broker));
}

}  // namespace sluice::queue
