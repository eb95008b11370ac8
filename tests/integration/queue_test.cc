// Requests beyond their limit in a real Kafka and a real RabbitMQ: nothing is lost, order is kept, the rate is the
// limit's. Short in CI; SLUICE_LONG_TESTS=1 runs the forms whose figures docs/overflow.md tells.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <iostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/brokers/queue_fixture.h"
#include "tests/integration/support/http_client.h"

namespace sluice::queue {
namespace {

double percentile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  const auto place = static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  return *(values.begin() + place);
}

TEST_P(QueueTest, APeakIsWorkedOffInAStraightLine) {
  const int count = is_long() ? 10'000 : 1'000;
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

  const auto begin_drain = Wall::now();
  DrainRunner runner(setup(*desk_->broker("orders"), desk_->tickets()));
  std::thread thread([&] { runner.run(); });
  const bool is_all = wait_received(static_cast<std::size_t>(count));
  runner.stop();
  thread.join();
  ASSERT_TRUE(is_all) << received_.size();
  check_received(received_);
  expect_never_early(begin_drain, 500);
  // Never more than a second's worth and the burst in any second, however it is cut: as long as the receiver is not
  // late for some and in time for others.
  std::size_t most = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < received_.size(); ++i) {
    while (received_[i].at - received_[first].at >= 1'000'000'000) ++first;
    most = std::max(most, i - first + 1);
  }
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
    EXPECT_LE(most, 501U);
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
  const auto delivered = [&](const std::string& by_last) {
    std::set<std::string> tickets;
    for (const Received& one : lines_of(output + by_last)) tickets.insert(one.ticket);
    return tickets.size();
  };
  // In mid-drain, as far as this process is quick enough.
  for (int round = 0; round < 2; ++round) {
    const std::size_t goal = std::min(delivered({}) + stored_.size() / 5, stored_.size());
    Process drainer(command);
    ASSERT_TRUE(in_time([&] { return delivered(drainer.output()) >= goal; })) << drainer.output();
    drainer.signal(SIGKILL);
    std::ignore = drainer.wait();
    output += drainer.output() + "\n";
  }
  Process drainer(command);
  EXPECT_TRUE(in_time([&] { return delivered(drainer.output()) >= stored_.size(); }));
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
  const auto delivered = [&] {
    const std::scoped_lock lock(mutex_);
    std::set<std::string> tickets;
    for (const Received& one : received_) tickets.insert(one.ticket);
    return tickets.size();
  };
  EXPECT_TRUE(in_time([&] { return delivered() >= stored_.size(); }));
  runner.stop();
  thread.join();
  std::cout << received_.size() - stored_.size() << " duplicates of " << stored_.size() << '\n';
  check_received(received_);
}

TEST_P(QueueTest, ABrokerThatHangsIsToldAsRefusalsInTime) {
  settings_.timeout = 3s;
  open_desk();
  ASSERT_TRUE(in_time([&] { return takes_one(); })) << desk_->figures()[0].problem;
  const int refused_before = refused_;
  on_broker([](auto& broker) { broker.pause(); });
  // Enough to fill the buffers of a socket. It stays stopped until the answers are here: nothing but the time limit can
  // have made them.
  admit(2'000, 2'000);
  on_broker([](auto& broker) { broker.resume(); });
  EXPECT_EQ(refused_ - refused_before, 2'000);
  // And it comes back.
  EXPECT_TRUE(in_time([&] { return takes_one(); })) << desk_->figures()[0].problem;
}

TEST_P(QueueTest, WhatWasRefusedIsNotDeliveredThoughItsTicketWasLost) {
  settings_.timeout = 3s;
  open_desk();
  ASSERT_TRUE(in_time([&] { return takes_one(); })) << desk_->figures()[0].problem;
  const int refused_before = refused_;
  testing::RedisServer& redis = servers().redis;
  const auto tickets = [&] { return redis.command({"KEYS", prefix_ + "ticket:*"})->elements; };
  const std::size_t before = tickets();
  on_broker([](auto& broker) { broker.pause(); });
  std::thread admitting([&] { admit(40, 40); });
  EXPECT_TRUE(in_time([&] { return tickets() >= before + 40; }));
  redis.command({"FLUSHALL"});
  redis.pause();
  admitting.join();
  redis.resume();
  on_broker([](auto& broker) { broker.resume(); });
  EXPECT_EQ(refused_ - refused_before, 40);
  // Behind them, of each key one that is taken.
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(in_time([&] { return takes_one(); })) << desk_->figures()[0].problem;
  DrainRunner runner(setup(*desk_->broker("orders"), desk_->tickets()));
  std::thread thread([&] { runner.run(); });
  EXPECT_TRUE(wait_received(stored_.size()));
  runner.stop();
  thread.join();
  for (const Received& one : received_) EXPECT_TRUE(stored_.contains(one.ticket)) << one.key << ' ' << one.number;
  std::cout << runner.counts().cancelled << " lay there all the same\n";
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
  EXPECT_TRUE(in_time([&] {
    const DrainReport report = desk_->figures()[0].drained;
    return report.foreign + report.expired + report.dead >= 4;
  }));
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
  test::HttpAnswer answer;
  // On a busy machine the next token may be there before the next request.
  for (int i = 0; i < 1000 && (i == 0 || answer.status == 200); ++i) answer = client.post("/v1/admit", request(0));
  EXPECT_EQ(answer.status, 429);
  EXPECT_NE(answer.body.find("queue_down"), std::string::npos) << answer.body;
  EXPECT_NE(client.get("/v1/queues").body.find("\"ready\":false"), std::string::npos);
  EXPECT_TRUE(daemon->process().has_printed("queue is not ready"));
  start_broker();
  ASSERT_TRUE(in_time([&] { return client.get("/v1/queues").body.find("\"ready\":true") != std::string::npos; }))
      << daemon->process().output();

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
  const auto missing = [&] {
    std::set<std::string> seen;
    for (const Received& one : lines_of(drainer.output())) seen.insert(one.ticket);
    return std::ranges::count_if(waiting, [&](const std::string& ticket) { return !seen.contains(ticket); });
  };
  EXPECT_TRUE(in_time([&] { return missing() == 0; })) << drainer.output();

  daemon = std::make_unique<test::Daemon>(folder.path() / "p.yaml", std::vector<std::string>{"--config", file});
  ASSERT_TRUE(daemon->ready()) << daemon->process().output();
  test::HttpClient again(daemon->http());
  std::string told;
  EXPECT_TRUE(in_time([&] {
    told = again.get("/v1/tickets/" + waiting.back()).body;
    return told.find("\"state\":\"done\"") != std::string::npos;
  })) << told;
  drainer.signal(SIGTERM);
  EXPECT_EQ(drainer.wait(), 0);
  const std::vector<Received> lines = lines_of(drainer.output());
  EXPECT_TRUE(std::ranges::is_sorted(lines, {}, &Received::number)) << "one key, so in order";
}

INSTANTIATE_TEST_SUITE_P(Kafka, QueueTest, ::testing::Values(config::QueueSettings::Kind::kafka));
INSTANTIATE_TEST_SUITE_P(RabbitMQ, QueueTest, ::testing::Values(config::QueueSettings::Kind::rabbitmq));

}  // namespace
}  // namespace sluice::queue
