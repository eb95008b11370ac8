#include "queue/rabbit_broker.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "queue/rabbit_consumer.h"
#include "queue/rabbit_publisher.h"
#include "queue/rabbit_thread.h"

namespace sluice::queue {
namespace {

using namespace std::chrono_literals;

constexpr auto kAskInterval = 500ms;

/// Asks for the length on a connection of its own, so that no confirm waits for that.
class LengthAsker final : private rabbit::Thread::Owner {
 public:
  LengthAsker(config::QueueSettings settings, const rabbit::Publisher& publisher)
      : settings_(std::move(settings)), publisher_(publisher), thread_(settings_, *this) {
    thread_.start();
  }
  LengthAsker(const LengthAsker&) = delete;
  LengthAsker& operator=(const LengthAsker&) = delete;
  ~LengthAsker() { stop(); }
  void stop() { thread_.stop(); }

  /// With what has been published since it was asked for.
  [[nodiscard]] std::optional<std::uint64_t> length() const {
    const std::scoped_lock lock(mutex_);
    if (!length_) return std::nullopt;
    return *length_ + (publisher_.counts().published - published_then_);
  }

 private:
  void serve(rabbit::Link& link) override {
    while (!thread_.stopping()) {
      const std::uint64_t published = publisher_.counts().published;
      const auto length = link.count();
      if (!length) return;
      {
        const std::scoped_lock lock(mutex_);
        length_ = length;
        published_then_ = published;
      }
      amqp_frame_t frame{};
      while (link.next(frame) == rabbit::Link::Event::frame) {
      }
      if (!link.is_open()) return;
      const auto end = std::chrono::steady_clock::now() + kAskInterval;
      while (!thread_.stopping() && std::chrono::steady_clock::now() < end) {
        link.wait(kAskInterval);
        thread_.woken();
      }
    }
  }
  void lost(const std::string& /*why*/) override {}
  void tick() override {}

  const config::QueueSettings settings_;
  const rabbit::Publisher& publisher_;
  mutable std::mutex mutex_;
  std::optional<std::uint64_t> length_;
  std::uint64_t published_then_ = 0;
  rabbit::Thread thread_;
};

class RabbitBroker final : public Broker {
 public:
  explicit RabbitBroker(const config::QueueSettings& settings)
      : settings_(settings), publisher_(settings), asker_(settings, publisher_) {}
  RabbitBroker(const RabbitBroker&) = delete;
  RabbitBroker& operator=(const RabbitBroker&) = delete;
  ~RabbitBroker() override { stop(); }

  void publish(Publish what, Done done) override { publisher_.publish(std::move(what), std::move(done)); }

  std::unique_ptr<Consumer> consume(const ConsumerOptions& options) override {
    return std::make_unique<rabbit::LaneConsumer>(settings_, options);
  }

  BrokerFigures figures() const override {
    rabbit::Publisher::Counts counts = publisher_.counts();
    return {.up = counts.up,
            .problem = std::move(counts.problem),
            .length = asker_.length(),
            .most = std::nullopt,
            .published = counts.published,
            .failed = counts.failed,
            .pending = counts.pending};
  }

  void stop() override {
    publisher_.stop();
    asker_.stop();
  }

 private:
  const config::QueueSettings settings_;
  rabbit::Publisher publisher_;
  LengthAsker asker_;
};

}  // namespace

std::unique_ptr<Broker> make_rabbit_broker(const config::QueueSettings& settings) {
  return std::make_unique<RabbitBroker>(settings);
}

}  // namespace sluice::queue
