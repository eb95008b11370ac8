// Requests whose keys lie in several slots of a cluster: each slot's step reserves, and when one refuses, the others
// give back.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "store/redis/key_slot.h"
#include "tests/fault/redis_topology.h"
#include "tests/integration/store_asker.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class RedisClusterSteps : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    log::configure(log::Level::error, log::Format::text);
    cluster_ = new ClusterSet;
  }
  static void TearDownTestSuite() { delete cluster_; }

  void SetUp() override { open({}); }
  void TearDown() override { expect_untouched_replicas(*cluster_); }
  void open(const store::redis::RedisOptions& more, std::chrono::milliseconds timeout = 2s) {
    for (std::size_t i = 0; i < 3; ++i) cluster_->server(i).command({"FLUSHALL"});
    store_.reset();
    store::redis::RedisOptions options = more;
    options.url = cluster_->url();
    options.timeout = timeout;
    auto made = store::redis::RedisStore::create(io_, options, metrics_);
    ASSERT_TRUE(made);
    store_ = *std::move(made);
    ASSERT_TRUE(run_until(io_, [&] {
      HeldCheck check({{.limit = &bucket_, .key = "warm"}});
      ask(io_, *store_, check);
      return check.failure == store::Failure::none;
    }));
  }
  Decision peek(const store::CountedLimit& limit, const std::string& key) {
    HeldCheck check({{.limit = &limit, .key = key, .cost = 0}});
    ask(io_, *store_, check);
    EXPECT_EQ(check.failure, store::Failure::none);
    return check.decisions[0];
  }
  // Until what was given back has come.
  void settle(std::uint64_t given_back) {
    ASSERT_TRUE(run_until(io_, [&] { return metrics_.value(metrics::Counter::store_give_backs) == given_back; }));
  }

  static ClusterSet* cluster_;
  boost::asio::io_context io_;
  metrics::Shard metrics_;
  store::CountedLimit bucket_{.numbers = {.algorithm = Algorithm::token_bucket, .rate = 1, .period = 1h, .burst = 10},
                              .identity = "d/b;tb",
                              .id = 1};
  store::CountedLimit window_{
      .numbers = {.algorithm = Algorithm::fixed_window, .rate = 10, .period = 24h}, .identity = "d/w;fw", .id = 2};
  store::CountedLimit log_{
      .numbers = {.algorithm = Algorithm::sliding_log, .rate = 10, .period = 1h}, .identity = "d/l;sl", .id = 3};
  store::CountedLimit slots_{.numbers = {.algorithm = Algorithm::leaky_bucket, .rate = 1, .period = 1h, .queue = 9},
                             .identity = "d/q;lb",
                             .id = 4};
  store::CountedLimit leases_{
      .numbers = {.algorithm = Algorithm::concurrency, .rate = 10, .ttl = 1h}, .identity = "d/c;cc", .id = 5};
  std::unique_ptr<store::redis::RedisStore> store_;
};
ClusterSet* RedisClusterSteps::cluster_ = nullptr;

TEST_F(RedisClusterSteps, AllOrNothingOverSlots) {
  HeldCheck check({{.limit = &bucket_, .key = "a", .cost = 3},
                   {.limit = &window_, .key = "b", .cost = 4},
                   {.limit = &log_, .key = "c", .cost = 5},
                   {.limit = &leases_, .key = "d", .cost = 1}});
  ask(io_, *store_, check);
  EXPECT_TRUE(check.admitted);
  EXPECT_EQ(check.decisions[0].remaining, 7U);
  EXPECT_EQ(check.decisions[3].remaining, 9U);
  ask(io_, *store_, check);
  EXPECT_TRUE(check.admitted);
  ask(io_, *store_, check);  // b has 2 left, c none
  EXPECT_FALSE(check.admitted);
  EXPECT_EQ(check.failure, store::Failure::none);
  EXPECT_TRUE(check.decisions[0].allowed);
  EXPECT_EQ(check.decisions[0].remaining, 4U);  // as it is: nothing was taken
  EXPECT_FALSE(check.decisions[1].allowed);
  EXPECT_FALSE(check.decisions[2].allowed);
  EXPECT_EQ(check.decisions[3].remaining, 8U);
  settle(2);
  EXPECT_EQ(peek(bucket_, "a").remaining, 4U);
  EXPECT_EQ(peek(window_, "b").remaining, 2U);
  EXPECT_EQ(peek(log_, "c").remaining, 0U);
  EXPECT_EQ(peek(leases_, "d").remaining, 8U);
}

// The windows of a calendar are told to the server with each call, also with what gives back.
TEST_F(RedisClusterSteps, GivesBackToACalendarsWindow) {
  store::CountedLimit month{
      .numbers = {.algorithm = Algorithm::fixed_window, .rate = 20, .period = 1s, .align = Align::calendar},
      .identity = "d/m;fw",
      .id = 7};
  month.numbers.calendar = {.unit = Calendar::Unit::month, .timezone = "UTC"};
  HeldCheck check({{.limit = &month, .key = "a", .cost = 5}, {.limit = &bucket_, .key = "b", .cost = 11}});
  ask(io_, *store_, check);
  EXPECT_EQ(check.failure, store::Failure::none);
  EXPECT_FALSE(check.admitted);
  settle(1);
  EXPECT_EQ(peek(month, "a").remaining, 20U);
}

TEST_F(RedisClusterSteps, SlotsOfALeakyBucketAreTakenLast) {
  HeldCheck check({{.limit = &slots_, .key = "a", .cost = 3}, {.limit = &bucket_, .key = "b", .cost = 6}});
  ask(io_, *store_, check);
  EXPECT_TRUE(check.admitted);
  ask(io_, *store_, check);
  EXPECT_FALSE(check.admitted);
  EXPECT_TRUE(check.decisions[0].allowed);
  EXPECT_EQ(check.decisions[0].remaining, 7U);
  EXPECT_EQ(check.decisions[0].delay, Wait());
  EXPECT_FALSE(check.decisions[1].allowed);
  EXPECT_EQ(peek(slots_, "a").remaining, 7U);
  // Nor is what was given back the last token.
  HeldCheck all({{.limit = &window_, .key = "w", .cost = 10}, {.limit = &bucket_, .key = "b", .cost = 6}});
  ask(io_, *store_, all);
  EXPECT_FALSE(all.admitted);
  EXPECT_TRUE(all.decisions[0].allowed);
  EXPECT_EQ(all.decisions[0].remaining, 10U);
  EXPECT_EQ(all.decisions[0].mark, Mark::none);
}

TEST_F(RedisClusterSteps, ShadowAndQuotaOverSlots) {
  const auto quotas = [&](std::uint64_t cost) {
    return std::vector<store::Charge>{
        {.limit = &bucket_, .key = "a", .cost = cost, .enforcement = store::Enforcement::quota},
        {.limit = &bucket_, .key = "b", .cost = 2 * cost, .enforcement = store::Enforcement::quota},
        {.limit = &window_, .key = "c", .cost = 6, .enforcement = store::Enforcement::shadow}};
  };
  HeldCheck check(quotas(4));
  ask(io_, *store_, check);
  EXPECT_TRUE(check.admitted);
  ask(io_, *store_, check);  // b has 2 left, c 4: one quota fits, and a shadow never denies
  EXPECT_TRUE(check.admitted);
  EXPECT_EQ(peek(bucket_, "a").remaining, 2U);
  EXPECT_EQ(peek(bucket_, "b").remaining, 2U);
  HeldCheck more({{.limit = &bucket_, .key = "a", .cost = 3, .enforcement = store::Enforcement::quota},
                  {.limit = &bucket_, .key = "b", .cost = 3, .enforcement = store::Enforcement::quota},
                  {.limit = &window_, .key = "c", .cost = 1, .enforcement = store::Enforcement::shadow}});
  ask(io_, *store_, more);
  EXPECT_FALSE(more.admitted);
  settle(1);
  EXPECT_EQ(peek(window_, "c").remaining, 4U);
}

// Row 59: a policy with two keys a request, many clients, a cluster.
TEST_F(RedisClusterSteps, public_report_59) {
  std::vector<std::unique_ptr<HeldCheck>> checks;
  std::vector<std::string> keys;
  for (int i = 0; i < 1'000; ++i) keys.push_back("client" + std::to_string(i));
  for (int round = 0; round < 3; ++round) {
    checks.clear();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      checks.push_back(std::make_unique<HeldCheck>(std::vector<store::Charge>{
          {.limit = &bucket_, .key = keys[i], .cost = 5}, {.limit = &window_, .key = keys[i], .cost = 5}}));
      start(*store_, *checks.back());
    }
    ASSERT_TRUE(
        run_until(io_, [&] { return std::ranges::all_of(checks, [](const auto& check) { return check->done; }); }));
    for (const auto& check : checks) {
      EXPECT_EQ(check->failure, store::Failure::none);
      EXPECT_EQ(check->admitted, round < 2);
    }
  }
  EXPECT_EQ(metrics_.value(metrics::Counter::store_splits), 0U);  // one user's limits share a slot
  for (std::size_t i = 0; i < 3; ++i) EXPECT_GT(cluster_->server(i).integer({"DBSIZE"}), 500);
}

TEST_F(RedisClusterSteps, GroupsShareCalls) {
  open({.cluster_groups = 8});
  std::vector<std::unique_ptr<HeldCheck>> checks;
  std::vector<std::string> keys;
  for (int i = 0; i < 512; ++i) keys.push_back("client" + std::to_string(i));
  const std::uint64_t before = metrics_.value(metrics::Counter::store_calls);
  for (const std::string& key : keys) {
    checks.push_back(std::make_unique<HeldCheck>(std::vector<store::Charge>{{.limit = &bucket_, .key = key}}));
    start(*store_, *checks.back());
  }
  ASSERT_TRUE(
      run_until(io_, [&] { return std::ranges::all_of(checks, [](const auto& check) { return check->done; }); }));
  for (const auto& check : checks) EXPECT_EQ(check->failure, store::Failure::none);
  EXPECT_LE(metrics_.value(metrics::Counter::store_calls) - before, 24U);
}

// What is given back only after its window has ended was of that window: the next one is whole, neither more nor less.
TEST_F(RedisClusterSteps, public_report_63_over_slots) {
  const store::CountedLimit brief{
      .numbers = {.algorithm = Algorithm::fixed_window, .rate = 3, .period = 300ms, .align = Align::first_hit},
      .identity = "d/brief;fw",
      .id = 6};
  const auto name_at = [&](std::size_t master) {
    std::string name = "name";
    while (cluster_->owner_of(name) != master) name += 'x';
    return name;
  };
  const std::string user = name_at(0);
  const std::string team = name_at(1);
  open({}, 900ms);
  HeldCheck both({{.limit = &brief, .key = user}, {.limit = &bucket_, .key = team}});
  ask(io_, *store_, both);
  EXPECT_EQ(both.failure, store::Failure::none);
  const std::uint64_t given_back = metrics_.value(metrics::Counter::store_give_backs);
  (void)run_until(io_, [begin = Clock::now()] { return Clock::now() - begin > 310ms; });

  cluster_->server(1).command({"CLIENT", "PAUSE", "600000", "WRITE"});
  ask(io_, *store_, both);
  EXPECT_EQ(both.failure, store::Failure::timeout);
  cluster_->server(1).command({"CLIENT", "UNPAUSE"});
  settle(given_back + 1);
  std::vector<std::unique_ptr<HeldCheck>> checks;
  for (int i = 0; i < 4; ++i) {
    checks.push_back(std::make_unique<HeldCheck>(std::vector<store::Charge>{{.limit = &brief, .key = user}}));
    start(*store_, *checks.back());
  }
  ASSERT_TRUE(
      run_until(io_, [&] { return std::ranges::all_of(checks, [](const auto& check) { return check->done; }); }));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(checks[i]->admitted, i < 3) << i;
  const long long left = cluster_->server(0).integer({"PTTL", "sluice:{" + user + "}d/brief;fw"});
  EXPECT_NE(left, -1);  // gone by now, or with an end
  EXPECT_LE(left, 300);
}

// A slot half moved: ASK for what has gone, TRYAGAIN for what is torn apart, and then MOVED.
TEST_F(RedisClusterSteps, ASlotThatMoves) {
  const std::uint16_t slot = store::redis::key_slot("mover");
  const std::size_t from = cluster_->owner_of("mover");
  const std::size_t to = from == 0 ? 1 : 0;
  const std::uint64_t failures = metrics_.value(metrics::Counter::store_failures);
  HeldCheck one({{.limit = &bucket_, .key = "mover", .cost = 1}});
  HeldCheck two({{.limit = &bucket_, .key = "mover", .cost = 1}, {.limit = &window_, .key = "mover", .cost = 1}});
  ask(io_, *store_, two);
  cluster_->begin_move(slot, from, to);
  cluster_->migrate("sluice:{mover}d/b;tb", from, to);
  ask(io_, *store_, one);
  EXPECT_EQ(one.failure, store::Failure::none);
  EXPECT_EQ(one.decisions[0].remaining, 8U);
  start(*store_, two);
  (void)run_until(io_, [&, begin = Clock::now()] { return Clock::now() - begin > 50ms; });
  EXPECT_FALSE(two.done);  // tried again and again
  cluster_->end_move(slot, from, to);
  ASSERT_TRUE(run_until(io_, [&] { return two.done; }));
  EXPECT_EQ(two.failure, store::Failure::none);
  EXPECT_EQ(two.decisions[0].remaining, 7U);
  ask(io_, *store_, one);
  EXPECT_EQ(one.decisions[0].remaining, 6U);
  EXPECT_GT(metrics_.value(metrics::Counter::store_redirects), 3U);
  EXPECT_EQ(metrics_.value(metrics::Counter::store_failures), failures);
  cluster_->move_slot(slot, to, from);
}
}  // namespace
}  // namespace sluice::testing
