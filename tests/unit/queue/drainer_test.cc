// The drainer on a queue in memory: what becomes of deliveries that fail, of keys, of tickets.
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "policy/policy.h"
#include "queue/callback_deliverer.h"
#include "queue/desk.h"
#include "queue/drain_runner.h"
#include "queue/exec_deliverer.h"
#include "queue/memory_broker.h"

namespace sluice::queue {
namespace {

using namespace std::chrono_literals;

class DrainerTest : public ::testing::Test {
 protected:
  using Deliver = std::function<Outcome(const Attempt& attempt)>;

  DrainerTest() {
    set_rate(10'000);
    desk_ = std::make_unique<Desk>(make_memory_tickets(1000));
    config::QueueSettings settings;
    settings.name = "orders";
    settings.stored_headers = {};
    desk_->add(settings, make_memory_broker(100));
    desk_->start();
    options_.queue = "orders";
    options_.drainer = "d";
    options_.first_pause = 1ms;
  }

  void set_rate(int rate) {
    policies_.set(policy::load_texts(std::vector<policy::SourceText>{
                                         {"p",
                                          "domain: shop\ndescriptors:\n  - key: to\n    rate_limit: {unit: second, "
                                          "requests_per_unit: " +
                                              std::to_string(rate) +
                                              ", algorithm: token_bucket, burst: 1, overflow: {queue: orders, "
                                              "max_length: 50, max_age: 1m}}\n"}})
                      .policy);
  }

  Admission admit(const std::string& key, const std::string& body) {
    Message message;
    message.domain = "shop";
    message.descriptors = {{.entries = {{"to", "orders"}}, .cost = std::nullopt}};
    message.key = key;
    message.group = key;
    message.body = body;
    message.headers = {{"Cookie", "secret"}, {"X-A", "1"}};
    Admission answer;
    const auto policy = policies_.get();
    desk_->admit(*policy->rules()[0], std::move(message), [&](Admission told) { answer = std::move(told); });
    if (answer.stored) tickets_.insert(answer.ticket);
    return answer;
  }

  /// Drains until `count` deliveries have been tried, then stops.
  DrainerCounts drain(std::size_t count, const Deliver& deliver) {
    DrainSetup setup;
    setup.options = options_;
    setup.policies = &policies_;
    setup.memory = std::make_shared<store::MemoryStore>(1000);
    setup.tickets = &desk_->tickets();
    setup.broker = desk_->broker("orders");
    DrainRunner* running = nullptr;
    std::size_t tried = 0;
    setup.make_deliverer = [&](boost::asio::io_context&) {
      return std::make_unique<CallbackDeliverer>([&](const Attempt& attempt, const Deliverer::Done& done) {
        order_.push_back(attempt.message->key + attempt.message->body);
        last_ = *attempt.message;
        const Outcome outcome = deliver(attempt);
        done(outcome);
        if (++tried == count) running->stop();
      });
    };
    DrainRunner runner(setup);
    running = &runner;
    runner.run();
    fault_ = runner.fault();
    return runner.counts();
  }

  std::optional<Ticket> ticket(const std::string& id) {
    std::optional<Ticket> found;
    desk_->ticket(id, [&](bool, std::optional<Ticket> told) { found = std::move(told); });
    return found;
  }

  policy::SnapshotHolder policies_;
  std::unique_ptr<Desk> desk_;
  DrainerOptions options_;
  std::set<std::string> tickets_;
  std::vector<std::string> order_;
  std::string fault_;
  int looks_ = 0;
  Message last_;
};

TEST_F(DrainerTest, TellsTheTicketHowItEnded) {
  const Admission admission = admit("a", "1");
  ASSERT_TRUE(admission.stored);
  EXPECT_EQ(admission.place, 1U);
  EXPECT_EQ(ticket(admission.ticket)->state, TicketState::queued);
  const DrainerCounts counts = drain(1, [](const Attempt&) { return Outcome{.status = 201, .reason = {}}; });
  EXPECT_EQ(counts.report.delivered, 1U);
  const auto told = ticket(admission.ticket);
  EXPECT_EQ(told->state, TicketState::done);
  EXPECT_EQ(told->status, 201);
  EXPECT_EQ(told->attempts, 1U);
  EXPECT_EQ(last_.ticket, admission.ticket);
  EXPECT_EQ(last_.headers, (Pairs{{"X-A", "1"}})) << "a cookie that is not listed is not stored";
}

TEST_F(DrainerTest, TriesAgainInOrderAndThenGivesUp) {
  options_.attempts = 3;
  const Admission first = admit("a", "1");
  const Admission second = admit("a", "2");
  const DrainerCounts counts = drain(4, [](const Attempt& attempt) {
    if (attempt.message->body == "2") return Outcome{};
    EXPECT_EQ(attempt.may_be_duplicate, attempt.number > 1);
    return Outcome{.kind = Outcome::Kind::retry, .status = 503, .reason = "answered 503"};
  });
  EXPECT_EQ(order_, (std::vector<std::string>{"a1", "a1", "a1", "a2"})) << "2 waits until 1 is a dead letter";
  EXPECT_EQ(counts.retries, 2U);
  EXPECT_EQ(counts.report.dead, 1U);
  EXPECT_EQ(counts.report.delivered, 1U);
  EXPECT_EQ(ticket(first.ticket)->state, TicketState::failed);
  EXPECT_EQ(ticket(first.ticket)->reason, "answered 503");
  EXPECT_EQ(ticket(first.ticket)->attempts, 3U);
  EXPECT_EQ(ticket(second.ticket)->attempts, 1U);
}

TEST_F(DrainerTest, WaitsAsLongAsItsReceiverAsks) {
  options_.longest_hold = 10s;
  const Admission asked = admit("a", "1");
  admit("b", "2");
  std::vector<std::chrono::steady_clock::time_point> tried;
  std::ignore = drain(3, [&](const Attempt& attempt) {
    if (attempt.message->body == "2") return Outcome{};
    tried.push_back(std::chrono::steady_clock::now());
    if (attempt.number > 1) return Outcome{};
    return Outcome{.kind = Outcome::Kind::retry, .status = 503, .reason = "answered 503", .retry_after = 300ms};
  });
  EXPECT_EQ(order_, (std::vector<std::string>{"a1", "b2", "a1"})) << "others do not wait";
  ASSERT_EQ(tried.size(), 2U);
  EXPECT_GE(tried[1] - tried[0], 300ms) << "though the pause is 1 ms";
  EXPECT_EQ(ticket(asked.ticket)->attempts, 2U);
}

TEST_F(DrainerTest, AReceiverThatAsksForTooLongGetsALastTry) {
  options_.longest_hold = 500ms;
  const Admission asked = admit("a", "1");
  std::ignore = drain(2, [](const Attempt& attempt) {
    if (attempt.number > 1) return Outcome{};
    return Outcome{.kind = Outcome::Kind::retry, .status = 503, .reason = "answered 503", .retry_after = 1h};
  });
  EXPECT_EQ(ticket(asked.ticket)->state, TicketState::done);
}

TEST_F(DrainerTest, LetsKeysTakeTurns) {
  for (int i = 0; i < 10; ++i) admit("big", std::to_string(i));
  admit("small", "0");
  options_.in_flight = 1;
  std::ignore = drain(11, [](const Attempt&) { return Outcome{}; });
  const auto place = std::ranges::find(order_, "small0") - order_.begin();
  EXPECT_LE(place, 2) << "one tenant's backlog does not hold up another's";
}

TEST_F(DrainerTest, DropsWhatWasCancelled) {
  const Admission unwanted = admit("a", "1");
  admit("a", "2");
  std::optional<TicketState> before;
  desk_->cancel(unwanted.ticket, [&](bool, std::optional<TicketState> was) { before = was; });
  EXPECT_EQ(before, TicketState::queued);
  const DrainerCounts counts = drain(1, [](const Attempt&) { return Outcome{}; });
  EXPECT_EQ(order_, (std::vector<std::string>{"a2"}));
  EXPECT_EQ(counts.cancelled, 1U);
  EXPECT_EQ(ticket(unwanted.ticket)->state, TicketState::cancelled);
}

TEST_F(DrainerTest, LeavesWhatItDidNotDeliverToTheNext) {
  set_rate(50);  // so that it stops between two
  for (int i = 0; i < 20; ++i) admit("a", std::to_string(i));
  std::ignore = drain(5, [](const Attempt&) { return Outcome{}; });
  std::ignore = drain(15, [](const Attempt&) { return Outcome{}; });
  ASSERT_EQ(order_.size(), 20U);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(order_[i], "a" + std::to_string(i));
  for (const std::string& id : tickets_) EXPECT_EQ(ticket(id)->attempts, 1U) << "what was claimed was not tried";
}

TEST_F(DrainerTest, WhatItClaimedAndDidNotTryIsQueuedAgainAndNoDuplicate) {
  set_rate(50);
  for (int i = 0; i < 10; ++i) admit("", std::to_string(i));
  std::ignore = drain(2, [](const Attempt&) { return Outcome{}; });
  for (const std::string& id : tickets_) EXPECT_NE(ticket(id)->state, TicketState::running);
  const DrainerCounts counts = drain(8, [](const Attempt& attempt) {
    EXPECT_FALSE(attempt.may_be_duplicate);
    return Outcome{};
  });
  EXPECT_EQ(counts.report.duplicates, 0U);
}

TEST_F(DrainerTest, StopsWhenNothingCanBeDeliveredAnyMoreAndLeavesAllInTheQueue) {
  for (int i = 0; i < 10; ++i) admit("", std::to_string(i));
  options_.attempts = 1;
  const DrainerCounts counts = drain(1000, [](const Attempt&) {
    return Outcome{.kind = Outcome::Kind::broken, .status = 0, .reason = "write: Broken pipe"};
  });
  EXPECT_EQ(fault_, "write: Broken pipe");
  EXPECT_EQ(order_.size(), 1U);
  EXPECT_EQ(counts.report.dead, 0U);
  EXPECT_EQ(counts.report.duplicates, 0U);
  for (const std::string& id : tickets_) {
    EXPECT_EQ(ticket(id)->state, TicketState::queued);
    EXPECT_EQ(ticket(id)->attempts, 0U);
  }
  const DrainerCounts then = drain(10, [](const Attempt& attempt) {
    EXPECT_FALSE(attempt.may_be_duplicate);
    return Outcome{};
  });
  EXPECT_EQ(then.report.delivered, 10U);
  EXPECT_EQ(fault_, "");
}

TEST_F(DrainerTest, WhatHindersAllDeliveriesCountsAgainstNoRequest) {
  options_.attempts = 2;
  const Admission admission = admit("a", "1");
  std::size_t tries = 0;
  const DrainerCounts counts = drain(8, [&](const Attempt& attempt) {
    EXPECT_EQ(attempt.number, 1U);
    if (++tries == 8) return Outcome{};
    return Outcome{.kind = Outcome::Kind::hindered, .status = 0, .reason = "write: No space left on device"};
  });
  EXPECT_EQ(counts.report.dead, 0U);
  EXPECT_EQ(counts.report.delivered, 1U);
  EXPECT_EQ(ticket(admission.ticket)->attempts, 1U);
}

TEST_F(DrainerTest, ACommandThatTheShellCannotFindIsAFaultOfTheDrainer) {
  options_.attempts = 2;
  const std::string there = ::testing::TempDir() + "drained-" + new_ticket();
  const Admission admission = admit("a", "1");
  DrainSetup setup;
  setup.options = options_;
  setup.policies = &policies_;
  setup.memory = std::make_shared<store::MemoryStore>(1000);
  setup.tickets = &desk_->tickets();
  setup.broker = desk_->broker("orders");
  setup.make_deliverer = [&](boost::asio::io_context& io) {
    return std::make_unique<ExecDeliverer>(io, there + " || exit $?", 10s);
  };
  DrainRunner runner(setup);
  boost::asio::steady_timer timer(runner.io());
  std::function<void()> look = [&] {
    timer.expires_after(20ms);
    timer.async_wait([&](const boost::system::error_code&) {
      const TicketState state = ticket(admission.ticket)->state;
      if (state == TicketState::done || state == TicketState::failed) {
        runner.stop();
        return;
      }
      // More tries than there are attempts have gone by.
      if (++looks_ == 30) std::filesystem::create_symlink("/bin/true", there);
      look();
    });
  };
  look();
  runner.run();
  EXPECT_EQ(ticket(admission.ticket)->state, TicketState::done);
  EXPECT_EQ(runner.counts().report.dead, 0U);
  std::filesystem::remove(there);
}

TEST_F(DrainerTest, AFailedOneWithoutAKeyHoldsUpNobody) {
  options_.first_pause = 500ms;
  admit("", "1");
  admit("", "2");
  const DrainerCounts counts = drain(3, [](const Attempt& attempt) {
    if (attempt.message->body == "2" || attempt.number > 1) return Outcome{};
    return Outcome{.kind = Outcome::Kind::retry, .status = 503, .reason = "answered 503"};
  });
  EXPECT_EQ(order_, (std::vector<std::string>{"1", "2", "1"}));
  EXPECT_EQ(counts.report.delivered, 2U);
}

TEST_F(DrainerTest, FollowsANewRateWithWhatItHasInHand) {
  set_rate(1);
  for (int i = 0; i < 20; ++i) admit("a", std::to_string(i));
  // At the old rate this would take 20 s and more.
  const auto begin = std::chrono::steady_clock::now();
  std::ignore = drain(20, [this](const Attempt& attempt) {
    if (attempt.message->body == "1") set_rate(10'000);
    return Outcome{};
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  ASSERT_EQ(order_.size(), 20U);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(order_[i], "a" + std::to_string(i));
}

TEST_F(DrainerTest, AQueueThatIsFullByItsOwnSettingsSaysSo) {
  Desk desk(make_memory_tickets(1000));
  config::QueueSettings settings;
  settings.name = "orders";
  desk.add(settings, make_memory_broker(3));
  const auto policy = policies_.get();
  std::vector<Admission> answers;
  for (int i = 0; i < 5; ++i) {
    Message message;
    message.domain = "shop";
    message.descriptors = {{.entries = {{"to", "orders"}}, .cost = std::nullopt}};
    desk.admit(*policy->rules()[0], std::move(message), [&](Admission told) { answers.push_back(std::move(told)); });
  }
  ASSERT_EQ(answers.size(), 5U);
  EXPECT_TRUE(answers[2].stored);
  EXPECT_EQ(answers[3].code, "queue_full");
  EXPECT_EQ(answers[4].code, "queue_full");
  EXPECT_EQ(desk.figures()[0].refused, 2U);
  EXPECT_EQ(desk.figures()[0].failed, 0U);
}

TEST_F(DrainerTest, AFullQueueRefusesWithATime) {
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(admit("a", "").stored);
  const Admission refused = admit("a", "");
  EXPECT_FALSE(refused.stored);
  EXPECT_EQ(refused.code, "queue_full");
  EXPECT_EQ(refused.retry_after, 1s);
}

}  // namespace
}  // namespace sluice::queue
