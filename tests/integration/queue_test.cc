// Requests beyond their limit in a real Kafka and a real RabbitMQ: nothing is lost, order is kept, the rate is the
// limit's. Short in CI; SLUICE_LONG_TESTS=1 runs the forms whose figures docs/overflow.md tells.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
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
#include "tests/integration/support/http_client.h"
#include "tests/integration/support/process.h"

namespace sluice::queue {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
using test::Process;
using test::TempFolder;

bool is_long() { return std::getenv("SLUICE_LONG_TESTS") != nullptr; }

std::string policy_text(int rate) {
  return "domain: shop\ndescriptors:\n  - key: to\n    value: orders\n    rate_limit: {period: 1s, "
         "requests_per_unit: " +
         std::to_string(rate) +
         ", algorithm: token_bucket, burst: 1, overflow: {queue: orders, max_length: 1000000, max_age: 30m}}\n";
}

/// One delivery as the receiver sees it.
struct Received {
  std::int64_t at = 0;  // steady ns
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
Servers& servers() {
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
    settings_.timeout = 3s;
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

  void load_policy(int rate) {
    rate_ = rate;
    policy::Loaded loaded = policy::load_texts(std::vector<policy::SourceText>{{"p", policy_text(rate)}});
    ASSERT_NE(loaded.policy, nullptr);
    policies_.set(loaded.policy);
  }

  void open_desk() {
    auto tickets = make_redis_tickets({.url = servers().redis.url(), .prefix = prefix_});
    ASSERT_TRUE(tickets);
    desk_ = std::make_unique<Desk>(*std::move(tickets));
    auto broker = make_broker(settings_);
    ASSERT_TRUE(broker);
    desk_->add(settings_, *std::move(broker));
    desk_->start();
    const auto end = Steady::now() + 60s;
    while (!desk_->figures()[0].ready || !desk_->figures()[0].length) {
      ASSERT_LT(Steady::now(), end) << desk_->figures()[0].problem;
      std::this_thread::sleep_for(10ms);
    }
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

  /// Admits `count` messages of 40 keys, at most `in_flight` at once, and waits for all answers. The latencies in ms.
  std::vector<double> admit(int count, int in_flight) {
    const auto policy = policies_.get();
    const policy::Rule& rule = *policy->rules()[0];
    std::mutex mutex;
    std::condition_variable changed;
    int open = 0;
    std::vector<double> latencies;
    for (int i = 0; i < count; ++i) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return open < in_flight; });
      ++open;
      lock.unlock();
      const std::string key = "k" + std::to_string(admitted_ % 40);
      const auto begin = Steady::now();
      desk_->admit(rule, message(key, admitted_ / 40), [&, begin](const Admission& admission) {
        const std::scoped_lock held(mutex);
        latencies.push_back(std::chrono::duration<double, std::milli>(Steady::now() - begin).count());
        if (!admission.stored) ++refused_;
        if (admission.stored) stored_.insert(admission.ticket);
        --open;
        changed.notify_all();
      });
      ++admitted_;
    }
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return open == 0; });
    return latencies;
  }

  /// The same number by the bare broker.
  std::vector<double> publish_bare(Broker& broker, int count, int in_flight) {
    std::mutex mutex;
    std::condition_variable changed;
    int open = 0;
    std::vector<double> latencies;
    for (int i = 0; i < count; ++i) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return open < in_flight; });
      ++open;
      lock.unlock();
      Publish what;
      Message made = message("k" + std::to_string(i % 40), i);
      made.ticket = std::string(std::size_t{32}, 'a');
      what.payload = encode(made);
      what.spread = made.key;
      what.dead = true;  // into the other queue, so that nobody counts them
      const auto begin = Steady::now();
      broker.publish(std::move(what), [&, begin](bool stored, std::string_view) {
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

  DrainSetup setup(Broker& broker, Tickets& tickets) {
    DrainSetup made;
    made.options.queue = "orders";
    made.options.drainer = new_ticket();
    made.options.in_flight = 64;
    made.policies = &policies_;
    made.redis.url = servers().redis.url();
    made.redis.prefix = prefix_;
    made.redis.timeout = 5s;
    made.tickets = &tickets;
    made.broker = &broker;
    made.make_deliverer = [this](boost::asio::io_context&) {
      return std::make_unique<CallbackDeliverer>([this](const Attempt& attempt, const Deliverer::Done& done) {
        const Message& got = *attempt.message;
        {
          const std::scoped_lock lock(mutex_);
          received_.push_back({.at = Steady::now().time_since_epoch().count(),
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

  bool wait_received(std::size_t count, std::chrono::seconds patience = 120s) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return received_.size() >= count; });
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
    text << "policy: [" << folder.write("p.yaml", policy_text(rate_)) << "]\nstore: {redis: {url: \""
         << servers().redis.url() << "\", prefix: \"" << prefix_ << "\"}}\nqueues:\n  orders: {timeout: 3s, ";
    if (GetParam() == Kind::kafka) {
      text << "type: kafka, brokers: \"" << settings_.brokers << "\", topic: " << settings_.topic
           << ", group: " << settings_.group << ", properties: {session.timeout.ms: 6000}}\n";
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
  int rate_ = 500;
  policy::SnapshotHolder policies_;
  std::unique_ptr<Desk> desk_;
  int admitted_ = 0;
  std::atomic<int> refused_{0};
  std::set<std::string> stored_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Received> received_;
};

double percentile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  const auto place = static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  return *(values.begin() + place);
}

TEST_P(QueueTest, APeakIsWorkedOffInAStraightLine) {
  const int count = is_long() ? 10'000 : 2'000;
  open_desk();
  const auto begin_bare = Steady::now();
  const auto bare = publish_bare(*desk_->broker("orders"), count, 64);
  const auto begin_admit = Steady::now();
  const auto admitted = admit(count, 64);
  const auto end_admit = Steady::now();
  ASSERT_EQ(refused_, 0);
  std::cout << "p99 bare " << percentile(bare, 0.99) << " ms, admitted " << percentile(admitted, 0.99) << " ms; "
            << count / std::chrono::duration<double>(begin_admit - begin_bare).count() << " and "
            << count / std::chrono::duration<double>(end_admit - begin_admit).count() << " a second\n";

  DrainRunner runner(setup(*desk_->broker("orders"), desk_->tickets()));
  std::thread thread([&] { runner.run(); });
  EXPECT_TRUE(wait_received(static_cast<std::size_t>(count)));
  runner.stop();
  thread.join();
  check_received(received_);
  // Never more than a second's worth and the burst in any second, however it is cut.
  std::size_t most = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < received_.size(); ++i) {
    while (received_[i].at - received_[first].at >= 1'000'000'000) ++first;
    most = std::max(most, i - first + 1);
  }
  EXPECT_LE(most, 501U);
  const double seconds = static_cast<double>(received_.back().at - received_.front().at) / 1e9;
  const double rate = static_cast<double>(received_.size() - 1) / seconds;
  std::size_t good = 0;
  const auto whole = static_cast<std::size_t>(seconds);
  for (std::size_t second = 0; second < whole; ++second) {
    const std::int64_t from = received_.front().at + static_cast<std::int64_t>(second) * 1'000'000'000;
    const auto in = std::ranges::count_if(
        received_, [&](const Received& one) { return one.at >= from && one.at < from + 1'000'000'000; });
    if (in >= 475) ++good;
  }
  std::cout << "most in a second " << most << ", " << rate << " a second in all, " << good << " of " << whole
            << " seconds with 475 or more\n";
  if (is_long()) {
    EXPECT_GE(rate, 0.99 * 500);
    EXPECT_GE(static_cast<double>(good), 0.95 * static_cast<double>(whole));
  }
}

TEST_P(QueueTest, NothingIsLostWhenTheDrainerIsKilled) {
  const int count = is_long() ? 3'000 : 1'000;
  open_desk();
  admit(count, 64);
  ASSERT_EQ(refused_, 0);
  const TempFolder folder;
  const std::string file = server_file(folder);
  const std::vector<std::string> command = {
      test::sluice_binary(), "drain", "--config", file, "--queue", "orders", "--stdout"};
  std::string output;
  for (int round = 0; round < 2; ++round) {
    Process drainer(command);
    ASSERT_TRUE(drainer.has_printed("{\"ticket\"", 90s)) << drainer.output();
    std::this_thread::sleep_for(400ms);
    drainer.signal(SIGKILL);
    std::ignore = drainer.wait();
    output += drainer.output() + "\n";
  }
  Process drainer(command);
  const auto end = Steady::now() + 120s;
  const auto delivered = [&] {
    std::set<std::string> tickets;
    for (const Received& one : lines_of(output + drainer.output())) tickets.insert(one.ticket);
    return tickets.size();
  };
  while (delivered() < stored_.size() && Steady::now() < end) std::this_thread::sleep_for(100ms);
  drainer.signal(SIGTERM);
  EXPECT_EQ(drainer.wait(), 0);
  const auto received = lines_of(output + drainer.output());
  std::cout << received.size() - stored_.size() << " duplicates of " << stored_.size() << '\n';
  check_received(received);
}

TEST_P(QueueTest, NothingIsLostWhenTheBrokerIsKilledAndComesBack) {
  const int count = is_long() ? 3'000 : 1'000;
  open_desk();
  admit(count, 64);
  ASSERT_EQ(refused_, 0);
  DrainRunner runner(setup(*desk_->broker("orders"), desk_->tickets()));
  std::thread thread([&] { runner.run(); });
  EXPECT_TRUE(wait_received(static_cast<std::size_t>(count) / 4));
  kill_broker();
  start_broker();
  const auto end = Steady::now() + 120s;
  const auto delivered = [&] {
    const std::scoped_lock lock(mutex_);
    std::set<std::string> tickets;
    for (const Received& one : received_) tickets.insert(one.ticket);
    return tickets.size();
  };
  while (delivered() < stored_.size() && Steady::now() < end) std::this_thread::sleep_for(100ms);
  runner.stop();
  thread.join();
  std::cout << received_.size() - stored_.size() << " duplicates of " << stored_.size() << '\n';
  check_received(received_);
}

TEST_P(QueueTest, ABrokerThatHangsIsToldAsRefusalsInTime) {
  open_desk();
  admit(10, 10);
  ASSERT_EQ(refused_, 0);
  on_broker([](auto& broker) { broker.pause(); });
  const auto begin = Steady::now();
  // Enough to fill the buffers of a socket.
  admit(2'000, 2'000);
  const auto taken = Steady::now() - begin;
  on_broker([](auto& broker) { broker.resume(); });
  EXPECT_EQ(refused_, 2'000);
  EXPECT_LT(taken, 60s) << "the time limit is 3 s";
  // And it comes back.
  const auto end = Steady::now() + 90s;
  while (Steady::now() < end) {
    const int refused_before = refused_;
    admit(1, 1);
    if (refused_ == refused_before) return;
    std::this_thread::sleep_for(100ms);
  }
  FAIL() << desk_->figures()[0].problem;
}

TEST_P(QueueTest, ForeignPoisonedExpiredAndCancelledMessagesAreNotDelivered) {
  open_desk();
  Broker& broker = *desk_->broker("orders");
  std::atomic<int> stored{0};
  const auto put = [&](std::string payload) {
    Publish what;
    what.payload = std::move(payload);
    what.spread = "k0";
    broker.publish(std::move(what), [&](bool is_stored, std::string_view) { stored += is_stored ? 1 : 0; });
  };
  put("somebody else's");
  Message old = message("k0", 7);
  old.ticket = new_ticket();
  old.expires_us = 1;
  put(encode(old));
  put(encode(old).substr(0, 20));
  Message too_much = message("k0", 8);
  too_much.ticket = new_ticket();
  too_much.cost = 1'000;
  put(encode(too_much));
  Message unwanted = message("k0", 9);
  unwanted.ticket = new_ticket();
  Ticket in_queue;
  in_queue.queue = "orders";
  std::atomic<bool> cancelled{false};
  desk_->tickets().create(unwanted.ticket, in_queue, 60s, [&](bool) {
    desk_->cancel(unwanted.ticket, [&](bool, std::optional<TicketState>) { cancelled = true; });
  });
  while (!cancelled) std::this_thread::sleep_for(1ms);
  put(encode(unwanted));
  admit(1, 1);
  while (stored < 5) std::this_thread::sleep_for(1ms);

  DrainRunner runner(setup(broker, desk_->tickets()));
  std::thread thread([&] { runner.run(); });
  EXPECT_TRUE(wait_received(1));
  const auto end = Steady::now() + 60s;
  while (Steady::now() < end) {
    const DrainReport report = desk_->figures()[0].drained;
    if (report.foreign + report.expired + report.dead >= 4) break;
    std::this_thread::sleep_for(50ms);
  }
  runner.stop();
  thread.join();
  const DrainerCounts counts = runner.counts();
  EXPECT_EQ(counts.report.foreign, 1U);
  EXPECT_EQ(counts.report.expired, 1U);
  EXPECT_EQ(counts.report.dead, 2U);
  EXPECT_EQ(counts.cancelled, 1U);
  EXPECT_EQ(counts.report.delivered, 1U);
  std::atomic<bool> answered{false};
  desk_->ticket(too_much.ticket, [&](bool, std::optional<Ticket> ticket) {
    EXPECT_TRUE(ticket && ticket->state == TicketState::failed);
    if (ticket) {
      EXPECT_EQ(ticket->reason, "its cost is more than its limit can ever have");
    }
    answered = true;
  });
  while (!answered) std::this_thread::sleep_for(1ms);
}

TEST_P(QueueTest, ADaemonStartsWithoutItsBrokerAndWhatItConfirmedOutlivesIt) {
  load_policy(100);
  const TempFolder folder;
  const std::string file = server_file(folder);
  kill_broker();
  auto daemon = std::make_unique<test::Daemon>(folder.path() / "p.yaml", std::vector<std::string>{"--config", file});
  ASSERT_TRUE(daemon->ready()) << daemon->process().output();
  test::HttpClient client(daemon->http());
  const auto request = [](int number) {
    return R"({"domain":"shop","descriptors":[{"to":"orders"}],"key":"k","method":"POST","path":"/orders","body":")" +
           std::to_string(number) + "\"}";
  };
  EXPECT_EQ(client.post("/v1/admit", request(0)).status, 200) << "a limit needs no broker";
  test::HttpAnswer answer = client.post("/v1/admit", request(0));
  EXPECT_EQ(answer.status, 429);
  EXPECT_NE(answer.body.find("queue_down"), std::string::npos) << answer.body;
  EXPECT_NE(client.get("/v1/queues").body.find("\"ready\":false"), std::string::npos);
  EXPECT_TRUE(daemon->process().has_printed("queue is not ready"));
  start_broker();
  const auto ready_by = Steady::now() + 90s;
  while (client.get("/v1/queues").body.find("\"ready\":true") == std::string::npos) {
    ASSERT_LT(Steady::now(), ready_by) << daemon->process().output();
    std::this_thread::sleep_for(50ms);
  }

  Process drainer({test::sluice_binary(), "drain", "--config", file, "--queue", "orders", "--stdout"});
  std::vector<std::string> waiting;
  for (int i = 1; i < 400; ++i) {
    answer = client.post("/v1/admit", request(i));
    if (answer.status == 202)
      waiting.push_back(answer.fields.at("location").substr(std::string("/v1/tickets/").size()));
    // In mid-drain, with a request on its way.
    if (i > 200 && drainer.output().find("{\"ticket\"") != std::string::npos) break;
  }
  ASSERT_FALSE(waiting.empty()) << answer.body;
  client.send(test::post_request("/v1/admit", request(400)));
  daemon->process().signal(SIGKILL);
  ASSERT_TRUE(daemon->process().wait());
  const auto end = Steady::now() + 120s;
  const auto missing = [&] {
    std::set<std::string> seen;
    for (const Received& one : lines_of(drainer.output())) seen.insert(one.ticket);
    return std::ranges::count_if(waiting, [&](const std::string& ticket) { return !seen.contains(ticket); });
  };
  while (missing() > 0 && Steady::now() < end) std::this_thread::sleep_for(100ms);
  EXPECT_EQ(missing(), 0) << drainer.output();

  daemon = std::make_unique<test::Daemon>(folder.path() / "p.yaml", std::vector<std::string>{"--config", file});
  ASSERT_TRUE(daemon->ready()) << daemon->process().output();
  test::HttpClient again(daemon->http());
  std::string told;
  while (Steady::now() < end) {
    told = again.get("/v1/tickets/" + waiting.back()).body;
    if (told.find("\"state\":\"done\"") != std::string::npos) break;
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_NE(told.find("\"state\":\"done\""), std::string::npos) << told;
  drainer.signal(SIGTERM);
  EXPECT_EQ(drainer.wait(), 0);
  const std::vector<Received> lines = lines_of(drainer.output());
  EXPECT_TRUE(std::ranges::is_sorted(lines, {}, &Received::number)) << "one key, so in order";
}

TEST_P(QueueTest, SeveralDrainersShareOneRate) {
  open_desk();
  for (const int drainers : is_long() ? std::vector<int>{2, 4, 8} : std::vector<int>{2}) {
    // A minute's worth in the middle: drainers join and leave at the ends.
    const std::size_t count = is_long() ? 40'000 : 1'000;
    stored_.clear();
    received_.clear();
    admitted_ = 0;
    admit(static_cast<int>(count), 64);
    std::vector<std::unique_ptr<DrainRunner>> runners;
    std::vector<std::thread> threads;
    for (int i = 0; i < drainers; ++i) {
      runners.push_back(std::make_unique<DrainRunner>(setup(*desk_->broker("orders"), desk_->tickets())));
      threads.emplace_back([runner = runners.back().get()] { runner->run(); });
    }
    EXPECT_TRUE(wait_received(count));
    for (const auto& runner : runners) runner->stop();
    for (std::thread& thread : threads) thread.join();
    check_received(received_);
    std::ranges::sort(received_, {}, &Received::at);
    const std::size_t from = count / 8;
    const std::size_t to = count - count / 8;
    const double seconds = static_cast<double>(received_[to].at - received_[from].at) / 1e9;
    const double rate = static_cast<double>(to - from) / seconds;
    std::cout << runners.size() << " drainers: " << rate << " a second over " << seconds << " s\n";
    EXPECT_LE(rate, 1.02 * 500);
    if (is_long()) {
      EXPECT_NEAR(rate, 500, 5);
    }
  }
}

TEST_P(QueueTest, TwentyThousandASecond) {
  if (!is_long()) GTEST_SKIP() << "for a machine without other work: SLUICE_LONG_TESTS=1";
  load_policy(20'000);
  open_desk();
  const std::size_t count = 100'000;
  admit(static_cast<int>(count), 1'000);
  DrainRunner runner(setup(*desk_->broker("orders"), desk_->tickets()));
  std::thread thread([&] { runner.run(); });
  EXPECT_TRUE(wait_received(count));
  runner.stop();
  thread.join();
  check_received(received_);
  const double seconds = static_cast<double>(received_.back().at - received_.front().at) / 1e9;
  std::cout << static_cast<double>(count) / seconds << " a second\n";
}

TEST_P(QueueTest, OneASecondKeepsTheBrokersPatience) {
  if (!is_long()) GTEST_SKIP() << "takes 80 s: SLUICE_LONG_TESTS=1";
  load_policy(1);
  open_desk();
  admit(200, 64);
  config::QueueSettings fitted;
  DrainSetup made = setup(*desk_->broker("orders"), desk_->tickets());
  fit_to_broker(settings_, *policies_.get(), fitted, made.options);
  auto broker = make_broker(fitted);
  ASSERT_TRUE(broker);
  made.broker = broker->get();
  DrainRunner runner(made);
  std::thread thread([&] { runner.run(); });
  EXPECT_TRUE(wait_received(80));
  runner.stop();
  thread.join();
  EXPECT_EQ(runner.counts().report.duplicates, 0U);
  if (GetParam() == Kind::rabbitmq) {
    EXPECT_EQ(servers().rabbit->log().find("PRECONDITION_FAILED"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Kafka, QueueTest, ::testing::Values(config::QueueSettings::Kind::kafka));
INSTANTIATE_TEST_SUITE_P(RabbitMQ, QueueTest, ::testing::Values(config::QueueSettings::Kind::rabbitmq));

}  // namespace
}  // namespace sluice::queue
