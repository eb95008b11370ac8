// What the tests of queues in real brokers share: brokers that are started once, a queue of its own for each test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "policy/policy.h"
#include "queue/callback_deliverer.h"
#include "queue/desk.h"
#include "queue/drain_runner.h"
#include "queue/make_broker.h"
#include "tests/integration/brokers/kafka_server.h"
#include "tests/integration/brokers/rabbit_server.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/support/daemon.h"

namespace sluice::queue {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
using Wall = std::chrono::system_clock;
using test::Process;
using test::TempFolder;

/// How long anything of the brokers' may take: they are slow to start and to give partitions again, and the machine may
/// be busy.
inline constexpr std::chrono::minutes kBrokerPatience{4};
/// Of a question to a broker or a store that is only to end some time.
inline constexpr std::chrono::seconds kAnswerPatience{30};

/// Waits until `holds()`; does it?
template <typename Holds>
bool in_time(Holds holds) {
  const auto end = Steady::now() + kBrokerPatience;
  while (!holds()) {
    if (Steady::now() > end) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

/// Are the long forms wanted?
inline bool is_long() { return std::getenv("SLUICE_LONG_TESTS") != nullptr; }

inline std::string policy_text(int rate, const std::string& period = "1s") {
  return "domain: shop\ndescriptors:\n  - key: to\n    value: orders\n    rate_limit: {period: " + period +
         ", requests_per_unit: " + std::to_string(rate) +
         ", algorithm: token_bucket, burst: 1, overflow: {queue: orders, max_length: 1000000, max_age: 30m}}\n";
}

/// One delivery as the receiver sees it.
struct Received {
  std::int64_t at = 0;  // ns, by the machine's clock, which Redis goes by
  std::string ticket;
  std::string key;
  int number = 0;  // of its key, in the order of admission
  bool may_be_duplicate = false;
};

/// What all brokers of the program share: starting one takes seconds.
struct Servers {
  testing::RedisServer redis;
  std::unique_ptr<testing::KafkaServer> kafka;
  std::unique_ptr<testing::RabbitServer> rabbit;
};
inline Servers& servers() {
  static Servers all;
  return all;
}

class QueueTest : public ::testing::TestWithParam<config::QueueSettings::Kind> {
 protected:
  using Kind = config::QueueSettings::Kind;

  void SetUp() override {
    static int serial = 0;
    settings_.name = "orders";
    settings_.kind = GetParam();
    settings_.timeout = kAnswerPatience;
    topic_ = "orders" + std::to_string(++serial);
    settings_.dead_letter = topic_ + ".dead";
    if (GetParam() == Kind::kafka) {
      if (!testing::has_kafka()) GTEST_SKIP() << "no jars of Kafka; see tests/integration/brokers/pom.xml";
      if (servers().kafka == nullptr) servers().kafka = std::make_unique<testing::KafkaServer>();
      settings_.brokers = servers().kafka->address();
      settings_.topic = topic_;
      settings_.group = "g" + topic_;
      settings_.properties = {{"session.timeout.ms", "6000"}};
      servers().kafka->make_topic(topic_, 4);
      servers().kafka->make_topic(settings_.dead_letter, 1);
    } else {
      if (!testing::has_rabbit()) GTEST_SKIP() << "no rabbitmq-server";
      if (servers().rabbit == nullptr) {
        servers().rabbit = std::make_unique<testing::RabbitServer>("consumer_timeout = 15000\n");
      }
      settings_.url = servers().rabbit->url();
      settings_.queue = topic_;
      settings_.lanes = 4;
      settings_.consumer_timeout = 15s;
    }
    prefix_ = topic_ + (GetParam() == Kind::kafka ? "k:" : "r:");
    load_policy(500);
  }

  template <typename Act>
  static void on_broker(const Act& act) {
    GetParam() == Kind::kafka ? act(*servers().kafka) : act(*servers().rabbit);
  }
  static void kill_broker() {
    on_broker([](auto& broker) { broker.kill(); });
  }
  static void start_broker() {
    on_broker([](auto& broker) { broker.start(); });
  }

  void load_policy(int rate, const std::string& period = "1s") {
    policy_text_ = policy_text(rate, period);
    policy::Loaded loaded = policy::load_texts(std::vector<policy::SourceText>{{"p", policy_text_}});
    ASSERT_NE(loaded.policy, nullptr);
    policies_.set(loaded.policy);
  }

  void open_desk() {
    auto tickets = make_redis_tickets({.url = servers().redis.url(), .prefix = prefix_, .timeout = kAnswerPatience});
    ASSERT_TRUE(tickets);
    desk_ = std::make_unique<Desk>(*std::move(tickets));
    auto broker = make_broker(settings_);
    ASSERT_TRUE(broker);
    desk_->add(settings_, *std::move(broker));
    desk_->start();
    ASSERT_TRUE(in_time([&] { return desk_->figures()[0].ready && desk_->figures()[0].length; }))
        << desk_->figures()[0].problem;
  }

  static Message message(const std::string& key, int number) {
    Message made;
    made.domain = "shop";
    made.descriptors = {{.entries = {{"to", "orders"}}, .cost = std::nullopt}};
    made.key = key;
    made.group = key;
    made.method = "POST";
    made.path = "/orders";
    made.body = std::to_string(number);
    return made;
  }

  using Answered = std::function<void(bool stored)>;

  /// Calls `start` for each of `count`, at most `in_flight` at once, and waits until each was answered. The latencies
  /// in ms.
  std::vector<double> time_each(int count, int in_flight, const std::function<void(int number, Answered)>& start) {
    std::mutex mutex;
    std::condition_variable changed;
    int open = 0;
    std::vector<double> latencies;
    for (int i = 0; i < count; ++i) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return open < in_flight; });
      ++open;
      lock.unlock();
      start(i, [&, begin = Steady::now()](bool stored) {
        const std::scoped_lock held(mutex);
        latencies.push_back(std::chrono::duration<double, std::milli>(Steady::now() - begin).count());
        if (!stored) ++refused_;
        --open;
        changed.notify_all();
      });
    }
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return open == 0; });
    return latencies;
  }

  /// Admits `count` messages of 40 keys.
  std::vector<double> admit(int count, int in_flight) {
    const auto policy = policies_.get();
    const policy::Rule& rule = *policy->rules()[0];
    std::mutex mutex;
    return time_each(count, in_flight, [&](int, const Answered& answered) {
      const std::string key = "k" + std::to_string(admitted_ % 40);
      Message made = message(key, admitted_ / 40);
      made.body += filler_;
      desk_->admit(rule, std::move(made), [&, answered](const Admission& admission) {
        if (admission.stored) {
          const std::scoped_lock held(mutex);
          stored_.insert(admission.ticket);
        }
        answered(admission.stored);
      });
      ++admitted_;
    });
  }

  /// Admits one; was it stored?
  bool takes_one() {
    const int refused_before = refused_;
    admit(1, 1);
    return refused_ == refused_before;
  }

  /// The same number by the bare broker.
  std::vector<double> publish_bare(Broker& broker, int count, int in_flight) {
    return time_each(count, in_flight, [&](int number, const Answered& answered) {
      Publish what;
      Message made = message("k" + std::to_string(number % 40), number);
      made.ticket = std::string(std::size_t{32}, 'a');
      what.payload = encode(made);
      what.spread = made.key;
      what.dead = true;  // into the other queue, so that nobody counts them
      broker.publish(std::move(what), [answered](bool stored, std::string_view) { answered(stored); });
    });
  }

  DrainSetup setup(Broker& broker, Tickets& tickets) {
    DrainSetup made;
    made.options.queue = "orders";
    made.options.drainer = new_ticket();
    made.options.in_flight = 64;
    made.policies = &policies_;
    made.redis.url = servers().redis.url();
    made.redis.prefix = prefix_;
    made.redis.timeout = kAnswerPatience;
    made.tickets = &tickets;
    made.broker = &broker;
    made.make_deliverer = [this](boost::asio::io_context&) {
      return std::make_unique<CallbackDeliverer>([this](const Attempt& attempt, const Deliverer::Done& done) {
        const Message& got = *attempt.message;
        {
          const std::scoped_lock lock(mutex_);
          received_.push_back({.at = Wall::now().time_since_epoch().count(),
                               .ticket = got.ticket,
                               .key = got.key,
                               .number = std::atoi(got.body.c_str()),
                               .may_be_duplicate = attempt.may_be_duplicate});
        }
        changed_.notify_all();
        done({});
      });
    };
    return made;
  }

  bool wait_received(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kBrokerPatience, [&] { return received_.size() >= count; });
  }

  /// What was received by a limit of so many a second and a burst of one, that was whole at `begin`: the next token
  /// comes when it comes, so no lateness makes a delivery come too early.
  void expect_never_early(Wall::time_point begin, std::int64_t a_second) {
    const std::scoped_lock lock(mutex_);
    const std::int64_t from = begin.time_since_epoch().count();
    for (std::size_t i = 0; i < received_.size(); ++i) {
      // Redis counts whole microseconds, and the wait for a token is by the machine's other clock.
      const std::int64_t earliest = from + static_cast<std::int64_t>(i) * 1'000'000'000 / a_second - 1'000'000;
      ASSERT_GE(received_[i].at, earliest) << "delivery " << i << " of " << received_.size();
    }
  }

  /// Every stored request was delivered, those that came twice are marked, and each key's first deliveries are in
  /// order.
  void check_received(const std::vector<Received>& received) const {
    std::map<std::string, int> times;
    std::map<std::string, int> next;
    for (const Received& one : received) {
      if (times[one.ticket]++ > 0) {
        EXPECT_TRUE(one.may_be_duplicate) << one.ticket << " came again, unmarked";
        continue;
      }
      EXPECT_EQ(one.number, next[one.key]++) << "of " << one.key;
    }
    std::size_t missing = 0;
    for (const std::string& ticket : stored_) missing += times.contains(ticket) ? 0U : 1U;
    EXPECT_EQ(missing, 0U);
    EXPECT_EQ(times.size(), stored_.size());
  }

  [[nodiscard]] std::string server_file(const TempFolder& folder) const {
    std::ostringstream text;
    text << "policy: [" << folder.write("p.yaml", policy_text_) << "]\nstore: {redis: {url: \"" << servers().redis.url()
         << "\", prefix: \"" << prefix_
         << "\", timeout: 10s}}\nqueues:\n  orders: {timeout: " << kAnswerPatience.count() << "s, ";
    if (GetParam() == Kind::kafka) {
      std::ostringstream properties;
      for (const auto& [name, value] : settings_.properties)
        properties << (properties.tellp() == 0 ? "{" : ", ") << name << ": \"" << value << '"';
      properties << '}';
      text << "type: kafka, brokers: \"" << settings_.brokers << "\", topic: " << settings_.topic
           << ", group: " << settings_.group << ", properties: " << properties.str() << "}\n";
    } else {
      text << "type: rabbitmq, url: \"" << settings_.url << "\", queue: " << settings_.queue
           << ", lanes: 4, consumer_timeout: 15s}\n";
    }
    return folder.write("server.yaml", text.str());
  }

  static std::vector<Received> lines_of(const std::string& output) {
    std::vector<Received> all;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
      const auto text = [&](const std::string& name) {
        const std::size_t at = line.find("\"" + name + "\":\"");
        const std::size_t begin = at + name.size() + 4;
        return at == std::string::npos ? std::string() : line.substr(begin, line.find('"', begin) - begin);
      };
      if (!line.starts_with("{\"ticket\"") || !line.ends_with('}')) continue;
      all.push_back({.at = 0,
                     .ticket = text("ticket"),
                     .key = text("key"),
                     .number = std::atoi(text("body").c_str()),
                     .may_be_duplicate = line.find("\"may_be_duplicate\":true") != std::string::npos});
    }
    return all;
  }

  config::QueueSettings settings_;
  std::string topic_;
  std::string prefix_;
  std::string policy_text_;
  std::string filler_;  ///< behind the number in each body
  policy::SnapshotHolder policies_;
  std::unique_ptr<Desk> desk_;
  int admitted_ = 0;
  std::atomic<int> refused_{0};
  std::set<std::string> stored_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Received> received_;
};

}  // namespace sluice::queue
