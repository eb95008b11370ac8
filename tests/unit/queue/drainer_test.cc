// The drainer on a queue in memory: what becomes of deliveries that fail, of keys, of tickets.
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
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
  admit("a", "2");
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
}

TEST_F(DrainerTest, AFailedOneWithoutAKeyHoldsUpNobody) {
  options_.first_pause = 20ms;
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

TEST_F(DrainerTest, AFullQueueRefusesWithATime) {
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(admit("a", "").stored);
  const Admission refused = admit("a", "");
  EXPECT_FALSE(refused.stored);
  EXPECT_EQ(refused.code, "queue_full");
  EXPECT_EQ(refused.retry_after, 1s);
}

}  // namespace
}  // namespace sluice::queue
