#include "queue/kafka_consumer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/log.h"
#include "queue/kafka_client.h"

namespace sluice::queue {
namespace {

using namespace std::chrono_literals;

constexpr auto kPoll = 100ms;
constexpr auto kRevokePatience = 10s;  // below session.timeout.ms and max.poll.interval.ms
constexpr auto kRoomPatience = 100ms;
constexpr int kMostAtOnce = 1000;
constexpr std::size_t kMostBytes = std::size_t{32} << 20U;  ///< in hand, of a partition

class KafkaConsumer final : public Consumer {
 public:
  KafkaConsumer(std::string topic, ConsumerOptions options) : topic_(std::move(topic)), options_(std::move(options)) {}
  KafkaConsumer(const KafkaConsumer&) = delete;
  KafkaConsumer& operator=(const KafkaConsumer&) = delete;
  ~KafkaConsumer() override { stop(); }

  void set_up(kafka::Conf& conf) {
    rd_kafka_conf_set_opaque(conf.get(), this);
    rd_kafka_conf_set_rebalance_cb(
        conf.get(), [](rd_kafka_t* /*handle*/, rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t* partitions,
                       void* self) { static_cast<KafkaConsumer*>(self)->rebalance(error, partitions); });
  }

  std::string start(kafka::Handle handle) {
    handle_ = std::move(handle);
    rd_kafka_poll_set_consumer(handle_.get());
    const kafka::Partitions topics(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_list_add(topics.get(), topic_.c_str(), RD_KAFKA_PARTITION_UA);
    if (const auto error = rd_kafka_subscribe(handle_.get(), topics.get()); error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return rd_kafka_err2str(error);
    }
    thread_ = std::thread([this] { run(); });
    return {};
  }

  std::vector<Delivery> take(std::size_t most) override {
    const std::scoped_lock lock(mutex_);
    std::vector<Delivery> taken;
    while (!arrived_.empty() && taken.size() < most) {
      taken.push_back(std::move(arrived_.front()));
      arrived_.pop_front();
    }
    return taken;
  }

  bool holds(std::uint64_t tag) override {
    const std::scoped_lock lock(mutex_);
    const Place* place = find(tag);
    return place != nullptr && !place->partition->is_leaving;
  }

  bool begin(std::uint64_t tag) override {
    const std::scoped_lock lock(mutex_);
    const Place* place = find(tag);
    if (place == nullptr || place->partition->is_leaving) return false;
    ++place->partition->begun;
    return true;
  }

  void pause(std::uint64_t tag) override {
    const std::scoped_lock lock(mutex_);
    if (const Place* place = find(tag)) ended(*place->partition);
  }

  void finish(std::uint64_t tag) override {
    const std::scoped_lock lock(mutex_);
    Place* place = find(tag);
    if (place == nullptr) return;
    Partition& partition = *std::exchange(place->partition, nullptr);
    ended(partition);
    partition.at(place->offset)->is_finished = true;
    while (!places_.empty() && places_.front().partition == nullptr) {
      places_.pop_front();
      ++first_tag_;
    }
    auto& unfinished = partition.unfinished;
    while (!unfinished.empty() && unfinished.front().is_finished) {
      partition.next = unfinished.front().offset + 1;
      partition.bytes -= unfinished.front().size;
      unfinished.pop_front();
      partition.has_news = true;
    }
    if (partition.is_full && has_room(partition)) {
      partition.is_full = false;
      if (--full_ == 0) settled_.notify_one();
    }
  }

  void stop() override {
    if (!thread_.joinable()) return;
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    settled_.notify_all();
    thread_.join();
  }

 private:
  struct Held {
    std::int64_t offset = 0;
    std::size_t size = 0;
    bool is_finished = false;
  };
  struct Partition {
    std::deque<Held> unfinished;  ///< by offset; the first of them is
    std::size_t bytes = 0;        ///< of them
    std::int64_t next = -1;       ///< to be committed
    std::uint64_t begun = 0;
    bool has_news = false;  ///< `next` is not stored yet
    bool is_full = false;   ///< the thread waits for room in it
    bool is_paused = false;
    bool is_leaving = false;  ///< it is about to go to another consumer

    /// Of this offset; null: it is not held.
    Held* at(std::int64_t offset) {
      const auto found = std::ranges::lower_bound(unfinished, offset, {}, &Held::offset);
      return found == unfinished.end() || found->offset != offset ? nullptr : &*found;
    }
  };
  struct Place {
    Partition* partition = nullptr;  ///< null: it is finished
    std::int64_t offset = 0;
  };

  // Under the mutex.
  Place* find(std::uint64_t tag) {
    if (tag < first_tag_ || tag - first_tag_ >= places_.size()) return nullptr;
    Place& place = places_[tag - first_tag_];
    return place.partition == nullptr ? nullptr : &place;
  }
  void ended(Partition& partition) {
    if (partition.begun == 0) return;
    --partition.begun;
    if (partition.begun == 0 && partition.is_leaving) settled_.notify_one();
  }
  [[nodiscard]] bool has_room(const Partition& partition) const {
    return partition.unfinished.size() <= options_.most / 2 && partition.bytes <= kMostBytes / 2;
  }
  [[nodiscard]] bool has_enough(const Partition& partition) const {
    return partition.unfinished.size() >= options_.most || partition.bytes >= kMostBytes;
  }

  void run() {
    while (!stopping_) {
      bool any = false;
      for (int i = 0; i < kMostAtOnce; ++i) {
        const kafka::FetchedMessage message(
            rd_kafka_consumer_poll(handle_.get(), i == 0 ? static_cast<int>(kPoll.count()) : 0));
        if (message == nullptr) break;
        if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
          tell(message->err, rd_kafka_message_errstr(message.get()));
          continue;
        }
        any = true;
        keep(*message);
      }
      if (any) options_.arrived();
      store_offsets();
      wait_for_room();
      pause_and_resume();
    }
    // Commits what is stored, and leaves the group at once.
    store_offsets();
    rd_kafka_consumer_close(handle_.get());
  }

  void tell(rd_kafka_resp_err_t error, const char* words) {
    if (error == RD_KAFKA_RESP_ERR__PARTITION_EOF || std::exchange(told_, error) == error) return;
    log::warn("cannot read the Kafka topic", {{"topic", topic_}, {"reason", words}});
  }

  void keep(const rd_kafka_message_t& message) {
    told_ = RD_KAFKA_RESP_ERR_NO_ERROR;
    const std::scoped_lock lock(mutex_);
    Partition& partition = partitions_[message.partition];
    // After a seek by the library itself what is unfinished may come again.
    const std::int64_t last = partition.unfinished.empty() ? partition.next - 1 : partition.unfinished.back().offset;
    if (message.offset <= last) return;
    partition.unfinished.push_back({.offset = message.offset, .size = message.len});
    partition.bytes += message.len;
    places_.push_back({&partition, message.offset});
    arrived_.push_back({.tag = first_tag_ + places_.size() - 1,
                        .payload = {static_cast<const char*>(message.payload), message.len},
                        .redelivered = false});
  }

  /// A partition that has enough is given a moment before it is paused, as that throws away what was fetched ahead of
  /// it.
  void wait_for_room() {
    std::unique_lock lock(mutex_);
    for (auto& [number, partition] : partitions_) {
      if (!partition.is_paused && has_enough(partition) && !std::exchange(partition.is_full, true)) ++full_;
    }
    settled_.wait_for(lock, kRoomPatience, [this] { return full_ == 0 || stopping_; });
  }

  void store_offsets() {
    const kafka::Partitions list(rd_kafka_topic_partition_list_new(8));
    {
      const std::scoped_lock lock(mutex_);
      for (auto& [number, partition] : partitions_) {
        if (!std::exchange(partition.has_news, false)) continue;
        rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), number)->offset = partition.next;
      }
    }
    if (list->cnt > 0) (void)rd_kafka_offsets_store(handle_.get(), list.get());
  }

  void pause_and_resume() {
    const kafka::Partitions full(rd_kafka_topic_partition_list_new(8));
    const kafka::Partitions free(rd_kafka_topic_partition_list_new(8));
    {
      const std::scoped_lock lock(mutex_);
      for (auto& [number, partition] : partitions_) {
        if (std::exchange(partition.is_full, false)) {
          partition.is_paused = true;
          rd_kafka_topic_partition_list_add(full.get(), topic_.c_str(), number);
        } else if (partition.is_paused && has_room(partition)) {
          partition.is_paused = false;
          rd_kafka_topic_partition_list_add(free.get(), topic_.c_str(), number);
        }
      }
      full_ = 0;
    }
    if (full->cnt > 0) (void)rd_kafka_pause_partitions(handle_.get(), full.get());
    if (free->cnt > 0) (void)rd_kafka_resume_partitions(handle_.get(), free.get());
  }

  void rebalance(rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t* partitions) {
    if (error == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
      log::info("Kafka gave partitions", {{"topic", topic_}, {"partitions", std::to_string(partitions->cnt)}});
      rd_kafka_assign(handle_.get(), partitions);
      const std::scoped_lock lock(mutex_);
      for (int i = 0; i < partitions->cnt; ++i) {
        const std::int32_t number = partitions->elems[i].partition;
        if (still_paused_.erase(number) > 0) partitions_[number].is_paused = true;
      }
      return;
    }
    log::info("Kafka takes partitions back", {{"topic", topic_}, {"partitions", std::to_string(partitions->cnt)}});
    let_go();
    store_offsets();
    if (rd_kafka_assignment_lost(handle_.get()) == 0) (void)rd_kafka_commit(handle_.get(), nullptr, 0);
    {
      const std::scoped_lock lock(mutex_);
      for (const auto& [number, partition] : partitions_) {
        if (partition.is_paused) still_paused_.insert(number);
      }
      partitions_.clear();
      first_tag_ += places_.size();
      places_.clear();
      full_ = 0;
    }
    rd_kafka_assign(handle_.get(), nullptr);
  }

  /// Begins nothing more, and waits for what is begun; at the stop nobody finishes anything any more.
  void let_go() {
    std::unique_lock lock(mutex_);
    arrived_.clear();
    for (auto& [number, partition] : partitions_) partition.is_leaving = true;
    lock.unlock();
    if (options_.lost) options_.lost();
    lock.lock();
    settled_.wait_for(lock, kRevokePatience, [this] {
      return stopping_ ||
             std::ranges::all_of(partitions_, [](const auto& partition) { return partition.second.begun == 0; });
    });
  }

  const std::string topic_;
  const ConsumerOptions options_;
  kafka::Handle handle_;
  std::atomic<bool> stopping_{false};
  rd_kafka_resp_err_t told_ = RD_KAFKA_RESP_ERR_NO_ERROR;
  std::mutex mutex_;
  std::condition_variable settled_;
  std::map<std::int32_t, Partition> partitions_;
  std::set<std::int32_t> still_paused_;  ///< paused when they were taken back: the library keeps that
  std::deque<Place> places_;             ///< by tag, from first_tag_; the first of them is not finished
  std::uint64_t first_tag_ = 1;
  std::size_t full_ = 0;  ///< partitions that are full
  std::deque<Delivery> arrived_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Consumer>> make_kafka_consumer(const config::QueueSettings& settings,
                                                      const ConsumerOptions& options) {
  auto conf = kafka::make_conf(settings.properties, {{"bootstrap.servers", settings.brokers},
                                                     {"group.id", settings.group},
                                                     {"enable.auto.commit", "true"},
                                                     {"auto.commit.interval.ms", "500"},
                                                     {"enable.auto.offset.store", "false"},
                                                     {"auto.offset.reset", "earliest"},
                                                     {"session.timeout.ms", "15000"},
                                                     {"fetch.wait.max.ms", "100"},
                                                     {"queued.max.messages.kbytes", "16384"},
                                                     {"log_level", "0"}});
  if (!conf) return conf.error();
  auto consumer = std::make_unique<KafkaConsumer>(settings.topic, options);
  consumer->set_up(*conf);
  auto handle = kafka::make_client(RD_KAFKA_CONSUMER, *std::move(conf));
  if (!handle) return handle.error();
  if (const std::string problem = consumer->start(*std::move(handle)); !problem.empty()) return Error{problem};
  return std::unique_ptr<Consumer>(std::move(consumer));
}

}  // namespace sluice::queue
