#include "queue/rig.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "policy/policy.h"
#include "queue/callback_deliverer.h"
#include "queue/make_broker.h"

namespace sluice::bench {
namespace {

using namespace std::chrono_literals;
using Kind = config::QueueSettings::Kind;
using Steady = std::chrono::steady_clock;

constexpr int kPartitions = 4;
constexpr int kKeys = 40;

queue::Message message_of(std::size_t number) {
  queue::Message message;
  message.domain = "shop";
  message.descriptors = {{.entries = {{"to", "orders"}}, .cost = std::nullopt}};
  message.key = "k" + std::to_string(number % kKeys);
  message.group = message.key;
  message.path = "/orders";
  message.body = std::string(100, 'x');
  return message;
}

/// Counts what is on its way, so that a caller can wait.
class Window {
 public:
  void enter(std::size_t most) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_ < most; });
    ++open_;
  }
  void leave() {
    const std::scoped_lock lock(mutex_);
    --open_;
    changed_.notify_one();
  }
  void wait_empty() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t open_ = 0;
};

}  // namespace

Rig::Rig(Kind kind) : kind_(kind) {
  redis_.start({"redis-server", "--port", std::to_string(redis_port_), "--bind", "127.0.0.1", "--save", ""}, {},
               folder_.path() / "redis.log");
  testing::wait_until_ready(redis_, "Redis", folder_.path() / "redis.log",
                            [this] { return testing::answers_tcp(redis_port_); });
  if (kind == Kind::kafka) kafka_ = std::make_unique<testing::KafkaServer>();
  if (kind == Kind::rabbitmq) rabbit_ = std::make_unique<testing::RabbitServer>();
}

config::QueueSettings Rig::new_queue(const std::string& name) {
  config::QueueSettings settings;
  settings.name = "orders";
  settings.kind = kind_;
  settings.timeout = 30s;
  settings.dead_letter = name + ".dead";
  if (kind_ == Kind::kafka) {
    settings.brokers = kafka_->address();
    settings.topic = name;
    settings.group = "g" + name;
    kafka_->make_topic(name, kPartitions);
    kafka_->make_topic(settings.dead_letter, 1);
  } else {
    settings.url = rabbit_->url();
    settings.queue = name;
  }
  return settings;
}

std::filesystem::path Rig::server_file(const config::QueueSettings& settings, std::uint64_t rate) const {
  const bool is_kafka = settings.kind == Kind::kafka;
  const std::string name = is_kafka ? settings.topic : settings.queue;
  const std::string file = name + "-" + std::to_string(rate);
  folder_.write(file + ".policy.yaml", policy_text(rate));
  folder_.write(file + ".yaml", "policy: [\"" + (folder_.path() / (file + ".policy.yaml")).string() +
                                    "\"]\nstore: {redis: {url: \"" + redis_url() + "\", prefix: \"" + name +
                                    ":\"}}\nqueues:\n  orders: {timeout: 30s, " +
                                    (is_kafka ? "type: kafka, brokers: \"" + settings.brokers + "\", topic: " + name +
                                                    ", group: " + settings.group
                                              : "type: rabbitmq, url: \"" + settings.url + "\", queue: " + name) +
                                    "}\n");
  return folder_.path() / (file + ".yaml");
}

void wait_for_rest() {
  constexpr double most_busy = 0.05;  // of all processors
  const auto times = [] {
    std::ifstream in("/proc/stat");
    std::string name;
    std::array<double, 8> spent{};  // user, nice, system, idle, waiting for input and output, interrupts, stolen
    in >> name;
    for (double& one : spent) in >> one;
    return spent;
  };
  const auto end = Steady::now() + 10s;
  for (auto before = times(); Steady::now() < end;) {
    std::this_thread::sleep_for(250ms);
    const auto now = times();
    double all = 0;
    for (std::size_t i = 0; i < now.size(); ++i) all += now[i] - before[i];
    const double idle = now[3] + now[4] - before[3] - before[4];
    if (idle >= (1 - most_busy) * all) return;
    before = now;
  }
}

Load make_load(std::size_t count) {
  Load load;
  for (std::size_t i = 0; i < count; ++i) {
    queue::Message message = message_of(i);
    message.ticket = queue::new_ticket();
    load.payloads.push_back(queue::encode(message));
    load.keys.push_back(message.key);
  }
  return load;
}

std::string policy_text(std::uint64_t rate) {
  return "domain: shop\ndescriptors:\n  - key: to\n    value: orders\n    rate_limit: {period: 1s, "
         "requests_per_unit: " +
         std::to_string(rate) +
         ", algorithm: token_bucket, burst: 1, overflow: {queue: orders, max_length: 10000000, max_age: 1h}}\n";
}

Shop::Shop(const Rig& rig, const config::QueueSettings& settings, std::uint64_t rate) : rig_(rig), settings_(settings) {
  policies_.set(policy::load_texts(std::vector<policy::SourceText>{{"p", policy_text(rate)}}).policy);
  auto tickets = queue::make_redis_tickets({.url = rig.redis_url(), .prefix = settings.dead_letter + ":"});
  if (!tickets) throw std::runtime_error(tickets.error().message);
  desk_ = std::make_unique<queue::Desk>(*std::move(tickets));
  auto broker = queue::make_broker(settings);
  if (!broker) throw std::runtime_error(broker.error().message);
  desk_->add(settings, *std::move(broker));
  desk_->start();
}

void Shop::open() {
  for (const auto end = Steady::now() + 60s; !desk_->figures()[0].ready || !desk_->figures()[0].length;) {
    if (Steady::now() > end) throw std::runtime_error("the queue is not ready: " + desk_->figures()[0].problem);
    std::this_thread::sleep_for(10ms);
  }
}

void Shop::fill(const Load& load) {
  Window window;
  std::atomic<std::size_t> failed{0};
  for (std::size_t i = 0; i < load.payloads.size(); ++i) {
    window.enter(2000);
    queue::Publish what;
    what.payload = load.payloads[i];
    what.spread = load.keys[i];
    desk_->broker("orders")->publish(std::move(what), [&](bool stored, std::string_view) {
      failed += stored ? 0 : 1;
      window.leave();
    });
  }
  window.wait_empty();
  if (failed > 0) throw std::runtime_error("a message was not stored");
}

Loop Shop::admit(std::size_t count, std::size_t in_flight) {
  const auto policy = policies_.get();
  Window window;
  std::mutex mutex;
  std::vector<double> latencies;
  std::string refused;
  const auto first = Steady::now();
  for (std::size_t i = 0; i < count; ++i) {
    window.enter(in_flight);
    desk_->admit(*policy->rules()[0], message_of(i), [&, begin = Steady::now()](const queue::Admission& admission) {
      {
        const std::scoped_lock lock(mutex);
        latencies.push_back(std::chrono::duration<double, std::milli>(Steady::now() - begin).count());
        if (!admission.stored) refused = admission.message;
      }
      window.leave();
    });
  }
  window.wait_empty();
  if (!refused.empty()) throw std::runtime_error("not admitted: " + refused);
  return summary_of(std::move(latencies), std::chrono::duration<double>(Steady::now() - first).count());
}

Loop Shop::drain(std::size_t count) {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t delivered = 0;
  Steady::time_point first;
  Steady::time_point last;
  queue::DrainSetup setup;
  setup.options.queue = "orders";
  setup.options.drainer = queue::new_ticket();
  setup.policies = &policies_;
  config::QueueSettings fitted;
  queue::fit_to_broker(settings_, *policies_.get(), fitted, setup.options);
  setup.redis.url = rig_.redis_url();
  setup.redis.prefix = setup.options.drainer + ":";
  setup.redis.timeout = 5s;
  setup.tickets = &desk_->tickets();
  setup.broker = desk_->broker("orders");
  setup.make_deliverer = [&](boost::asio::io_context&) {
    return std::make_unique<queue::CallbackDeliverer>([&](const queue::Attempt&, const queue::Deliverer::Done& done) {
      if (++delivered == 1) first = Steady::now();
      if (delivered == count) {
        const std::scoped_lock lock(mutex);
        last = Steady::now();
        changed.notify_one();
      }
      done({});
    });
  };
  queue::DrainRunner runner(setup);
  std::thread thread([&] { runner.run(); });
  bool whole = false;
  {
    std::unique_lock lock(mutex);
    whole = changed.wait_for(lock, 180s, [&] { return last != Steady::time_point(); });
  }
  runner.stop();
  thread.join();
  if (!whole) throw std::runtime_error("only " + std::to_string(delivered) + " were delivered");
  return {.per_second = static_cast<double>(count - 1) / std::chrono::duration<double>(last - first).count()};
}

}  // namespace sluice::bench
