#include "queue/memory_broker.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <ranges>
#include <unordered_map>
#include <utility>

namespace sluice::queue {
namespace {

class MemoryBroker;

class MemoryConsumer final : public Consumer {
 public:
  MemoryConsumer(MemoryBroker& broker, ConsumerOptions options) : broker_(broker), options_(std::move(options)) {}
  MemoryConsumer(const MemoryConsumer&) = delete;
  MemoryConsumer& operator=(const MemoryConsumer&) = delete;
  ~MemoryConsumer() override { leave(); }

  std::vector<Delivery> take(std::size_t most) override;
  bool holds(std::uint64_t tag) override { return held_.contains(tag); }
  bool begin(std::uint64_t tag) override { return held_.contains(tag); }
  void pause(std::uint64_t /*tag*/) override {}
  void finish(std::uint64_t tag) override;
  void stop() override { leave(); }
  void arrived() const { options_.arrived(); }

 private:
  void leave();
  MemoryBroker& broker_;
  const ConsumerOptions options_;
  std::uint64_t next_tag_ = 1;
  std::unordered_map<std::uint64_t, std::string> held_;
};

class MemoryBroker final : public Broker {
 public:
  explicit MemoryBroker(std::size_t most) : most_(most) {}

  void publish(Publish what, Done done) override {
    std::string_view why;
    {
      const std::scoped_lock lock(mutex_);
      std::deque<std::string>& line = what.dead ? dead_ : waiting_;
      if (what.dead && line.size() >= most_) line.pop_front();
      if (!what.dead && line.size() + held_ >= most_) {
        why = kBrokerFull;
        ++failed_;
      } else {
        line.push_back(std::move(what.payload));
        if (!what.dead) ++published_;
        if (!what.dead && consumer_ != nullptr) consumer_->arrived();
      }
    }
    done(why.empty(), why);
  }

  std::unique_ptr<Consumer> consume(const ConsumerOptions& options) override {
    auto consumer = std::make_unique<MemoryConsumer>(*this, options);
    const std::scoped_lock lock(mutex_);
    consumer_ = consumer.get();
    if (!waiting_.empty()) consumer_->arrived();
    return consumer;
  }

  BrokerFigures figures() const override {
    const std::scoped_lock lock(mutex_);
    return {.up = true,
            .problem = {},
            .length = waiting_.size() + held_,
            .most = most_,
            .counts_held = true,
            .published = published_,
            .failed = failed_,
            .pending = 0};
  }

  void stop() override {}

  // -- of its consumer
  void take(std::vector<std::string>& payloads, std::size_t most) {
    const std::scoped_lock lock(mutex_);
    while (!waiting_.empty() && payloads.size() < most) {
      payloads.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
      ++held_;
    }
  }
  void finished() {
    const std::scoped_lock lock(mutex_);
    --held_;
  }
  void left(std::vector<std::string> unfinished) {
    const std::scoped_lock lock(mutex_);
    consumer_ = nullptr;
    held_ -= unfinished.size();
    for (std::string& payload : unfinished | std::views::reverse) waiting_.push_front(std::move(payload));
  }

 private:
  const std::size_t most_;
  mutable std::mutex mutex_;
  std::deque<std::string> waiting_;
  std::deque<std::string> dead_;
  std::size_t held_ = 0;  ///< taken, not finished
  std::uint64_t published_ = 0;
  std::uint64_t failed_ = 0;
  MemoryConsumer* consumer_ = nullptr;
};

std::vector<Delivery> MemoryConsumer::take(std::size_t most) {
  std::vector<std::string> payloads;
  const std::size_t room = options_.most > held_.size() ? options_.most - held_.size() : 0;
  broker_.take(payloads, std::min(most, room));
  std::vector<Delivery> taken;
  for (const std::string& payload : payloads) {
    held_.emplace(next_tag_, payload);
    taken.push_back({.tag = next_tag_++, .payload = payload});
  }
  return taken;
}

void MemoryConsumer::finish(std::uint64_t tag) {
  if (held_.erase(tag) == 0) return;
  broker_.finished();
  if (held_.size() + 1 == options_.most) options_.arrived();
}

void MemoryConsumer::leave() {
  std::vector<std::pair<std::uint64_t, std::string>> held(held_.begin(), held_.end());
  held_.clear();
  std::ranges::sort(held);
  std::vector<std::string> unfinished;
  unfinished.reserve(held.size());
  for (auto& [tag, payload] : held) unfinished.push_back(std::move(payload));
  broker_.left(std::move(unfinished));
}

}  // namespace

std::unique_ptr<Broker> make_memory_broker(std::size_t most) { return std::make_unique<MemoryBroker>(most); }

}  // namespace sluice::queue
