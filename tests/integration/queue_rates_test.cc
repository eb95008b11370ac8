// The rates at which queues in real brokers are worked off, from one in two seconds to twenty thousand a second.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/brokers/queue_fixture.h"
#include "tests/integration/support/http_client.h"

namespace sluice::queue {
namespace {

/// Where deliveries go: answers 200 to each, one connection each, and notes when it came.
class HttpUpstream {
 public:
  HttpUpstream() : acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}), thread_([this] { serve(); }) {}
  HttpUpstream(const HttpUpstream&) = delete;
  HttpUpstream& operator=(const HttpUpstream&) = delete;
  ~HttpUpstream() {
    stopping_ = true;
    boost::asio::ip::tcp::socket last(io_);
    last.connect(acceptor_.local_endpoint());
    last.close();
    thread_.join();
  }
  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }
  std::vector<Wall::time_point> times() {
    const std::scoped_lock lock(mutex_);
    return times_;
  }

 private:
  void serve() {
    while (!stopping_) {
      boost::asio::ip::tcp::socket socket(io_);
      acceptor_.accept(socket);
      boost::system::error_code error;
      std::string request;
      boost::asio::read_until(socket, boost::asio::dynamic_buffer(request), "\r\n\r\n", error);
      if (error) continue;
      {
        const std::scoped_lock lock(mutex_);
        times_.push_back(Wall::now());
      }
      boost::asio::write(
          socket, boost::asio::buffer(std::string("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")),
          error);
    }
  }

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<Wall::time_point> times_;
  std::thread thread_;
};

/// A consumer that counts what its broker hands out.
class CountingConsumer final : public Consumer {
 public:
  struct Counts {
    std::atomic<std::uint64_t> taken{0};
    std::atomic<std::uint64_t> redelivered{0};
  };
  CountingConsumer(std::unique_ptr<Consumer> inner, Counts& counts) : inner_(std::move(inner)), counts_(counts) {}
  std::vector<Delivery> take(std::size_t most) override {
    auto taken = inner_->take(most);
    counts_.taken += taken.size();
    for (const Delivery& one : taken) counts_.redelivered += one.redelivered ? 1 : 0;
    return taken;
  }
  bool holds(std::uint64_t tag) override { return inner_->holds(tag); }
  bool begin(std::uint64_t tag) override { return inner_->begin(tag); }
  void pause(std::uint64_t tag) override { inner_->pause(tag); }
  void finish(std::uint64_t tag) override { inner_->finish(tag); }
  void stop() override { inner_->stop(); }

 private:
  const std::unique_ptr<Consumer> inner_;
  Counts& counts_;
};

class CountingBroker final : public Broker {
 public:
  explicit CountingBroker(std::unique_ptr<Broker> inner) : inner_(std::move(inner)) {}
  void publish(Publish what, Done done) override { inner_->publish(std::move(what), std::move(done)); }
  std::unique_ptr<Consumer> consume(const ConsumerOptions& options) override {
    return std::make_unique<CountingConsumer>(inner_->consume(options), counts);
  }
  [[nodiscard]] BrokerFigures figures() const override { return inner_->figures(); }
  void stop() override { inner_->stop(); }

  CountingConsumer::Counts counts;

 private:
  const std::unique_ptr<Broker> inner_;
};

using QueueRatesTest = QueueTest;

TEST_P(QueueRatesTest, OneInTwoSecondsOverHttp) {
  load_policy(1, "2s");
  const TempFolder folder;
  const std::string file = server_file(folder);
  // Its answers tell when each was delivered.
  HttpUpstream upstream;
  test::Daemon daemon(folder.path() / "p.yaml", {"--config", file});
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  test::HttpClient client(daemon.http());
  ASSERT_TRUE(in_time([&] { return client.get("/v1/queues").body.find("\"ready\":true") != std::string::npos; }))
      << daemon.process().output();
  const std::size_t count = is_long() ? 30 : 3;
  std::size_t waiting = 0;
  Wall::time_point emptied;  // or a little later
  while (waiting < count) {
    const auto asked = Wall::now();
    const auto answer =
        client.post("/v1/admit", R"({"domain":"shop","descriptors":[{"to":"orders"}],"key":"k","body":"x"})");
    ASSERT_LT(answer.status, 300) << answer.body;
    if (answer.status == 202) ++waiting;
    if (answer.status == 200) emptied = asked;
  }
  Process drainer({test::sluice_binary(), "drain", "--config", file, "--queue", "orders", "--deliver", upstream.url()});
  EXPECT_TRUE(in_time([&] { return upstream.times().size() >= count; }));
  drainer.signal(SIGTERM);
  EXPECT_EQ(drainer.wait(), 0) << drainer.output();
  const auto times = upstream.times();
  ASSERT_EQ(times.size(), count);
  // One late, and the next one not, may follow each other closely; but each has its token first.
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_GE(times[i] - emptied, (i + 1) * 2s - 1ms) << i;
  std::cout << static_cast<double>(count - 1) / std::chrono::duration<double>(times.back() - times.front()).count()
            << " a second\n";
}

/// A delivery that takes longer than Kafka waits for the next poll, while its partition and the others are full.
TEST_P(QueueRatesTest, ALongHoldKeepsTheGroupTogether) {
  if (GetParam() != Kind::kafka) GTEST_SKIP() << "RabbitMQ has no groups";
  // As long as a busy machine may keep the group's member from its processor.
  settings_.properties = {{"session.timeout.ms", "10000"}, {"max.poll.interval.ms", "10000"}};
  load_policy(500);
  open_desk();
  admit(12'000, 500);
  ASSERT_EQ(refused_, 0);
  const TempFolder folder;
  const std::string hold = is_long() ? "60" : "12";
  Process drainer({test::sluice_binary(), "drain", "--config", server_file(folder), "--queue", "orders", "--in-flight",
                   "1", "--timeout", "5m", "--exec",
                   "[ -e " + (folder.path() / "held").string() + " ] || { touch " + (folder.path() / "held").string() +
                       "; sleep " + hold + "; echo held; }"});
  EXPECT_TRUE(drainer.has_printed("held", kBrokerPatience)) << drainer.output();
  std::this_thread::sleep_for(1s);
  const std::string before_stop = drainer.output();
  EXPECT_EQ(before_stop.find("Kafka takes partitions back"), std::string::npos) << before_stop;
  const std::size_t given = before_stop.find("Kafka gave partitions");
  ASSERT_NE(given, std::string::npos) << before_stop;
  EXPECT_EQ(before_stop.find("Kafka gave partitions", given + 1), std::string::npos) << before_stop;
  drainer.signal(SIGTERM);
  EXPECT_EQ(drainer.wait(60s), 0) << drainer.output();
}

TEST_P(QueueRatesTest, SeveralDrainersShareOneRate) {
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
    const auto begin = Wall::now();
    for (int i = 0; i < drainers; ++i) {
      runners.push_back(std::make_unique<DrainRunner>(setup(*desk_->broker("orders"), desk_->tickets())));
      threads.emplace_back([runner = runners.back().get()] { runner->run(); });
    }
    const bool is_all = wait_received(count);
    for (const auto& runner : runners) runner->stop();
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(is_all) << received_.size();
    check_received(received_);
    std::ranges::sort(received_, {}, &Received::at);
    expect_never_early(begin, 500);
    const std::size_t from = count / 8;
    const std::size_t to = count - count / 8;
    const double seconds = static_cast<double>(received_[to].at - received_[from].at) / 1e9;
    const double rate = static_cast<double>(to - from) / seconds;
    std::cout << runners.size() << " drainers: " << rate << " a second over " << seconds << " s\n";
    if (is_long()) {
      EXPECT_NEAR(rate, 500, 5);
    }
  }
}

/// A drainer comes while the first has all that it may have in hand, so that Kafka's partitions are paused.
TEST_P(QueueRatesTest, ADrainerMayJoinInAPeak) {
  constexpr std::size_t count = 800;
  load_policy(100);
  open_desk();
  admit(count, 64);
  std::vector<std::unique_ptr<DrainRunner>> runners;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    DrainSetup made = setup(*desk_->broker("orders"), desk_->tickets());
    made.options.in_flight = 8;
    made.options.in_hand = 128;
    runners.push_back(std::make_unique<DrainRunner>(made));
    threads.emplace_back([runner = runners.back().get()] { runner->run(); });
    EXPECT_TRUE(wait_received(i == 0 ? count / 6 : count));
  }
  for (const auto& runner : runners) runner->stop();
  for (std::thread& thread : threads) thread.join();
  check_received(received_);
  std::cout << std::ranges::count_if(received_, &Received::may_be_duplicate) << " of " << count << " marked\n";
}

TEST_P(QueueRatesTest, TwentyThousandASecond) {
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

TEST_P(QueueRatesTest, OneASecondKeepsTheBrokersPatience) {
  if (!is_long() && GetParam() == Kind::kafka) GTEST_SKIP() << "takes 80 s: SLUICE_LONG_TESTS=1";
  // RabbitMQ looks once a second whether somebody keeps a message for longer than 15 s.
  const std::size_t count = is_long() ? 80 : 18;
  load_policy(1);
  open_desk();
  admit(200, 64);
  config::QueueSettings fitted;
  DrainSetup made = setup(*desk_->broker("orders"), desk_->tickets());
  fit_to_broker(settings_, *policies_.get(), fitted, made.options);
  auto made_broker = make_broker(fitted);
  ASSERT_TRUE(made_broker);
  CountingBroker broker(*std::move(made_broker));
  made.broker = &broker;
  DrainRunner runner(made);
  std::thread thread([&] { runner.run(); });
  EXPECT_TRUE(wait_received(count));
  runner.stop();
  thread.join();
  EXPECT_EQ(runner.counts().report.duplicates, 0U);
  // Handed out once each, and never more ahead than the broker has patience for.
  EXPECT_EQ(broker.counts.redelivered, 0U);
  std::cout << broker.counts.taken << " taken for " << received_.size() << " delivered\n";
  if (GetParam() == Kind::rabbitmq) {
    EXPECT_LE(broker.counts.taken, received_.size() + 15);
    EXPECT_EQ(servers().rabbit->log().find("PRECONDITION_FAILED"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Kafka, QueueRatesTest, ::testing::Values(config::QueueSettings::Kind::kafka));
INSTANTIATE_TEST_SUITE_P(RabbitMQ, QueueRatesTest, ::testing::Values(config::QueueSettings::Kind::rabbitmq));

}  // namespace
}  // namespace sluice::queue
