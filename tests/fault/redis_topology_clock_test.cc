// A failover between servers whose clocks are 9 s apart, in both directions.
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/fault/redis_topology.h"
#include "tests/integration/store_asker.h"
#include "tests/integration/support/documented_acl.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kApart = 9s;
// Full again after 2 s, and the next token after 0.1 s.
constexpr auto kFill = 2s;
constexpr auto kToken = 100ms;

class RedisClocks : public RedisTopology {
 protected:
  RedisClocks() { bucket_ = {.algorithm = Algorithm::token_bucket, .rate = 10, .period = 1s, .burst = 20}; }

  void fail_over(std::chrono::milliseconds first, std::chrono::milliseconds second) {
    SetOptions options = servers(kBehindSentinel);
    options.clocks_ahead = {first, second};
    SentinelSet set(options);
    const auto seconds_at = [](RedisServer& server) {
      return std::stoll(std::string(store::redis::text_of(*server.command({"TIME"})->element[0])));
    };
    const long long ahead = seconds_at(set.replica()) - seconds_at(set.master());
    const long long meant = std::chrono::duration_cast<std::chrono::seconds>(second - first).count();
    EXPECT_NEAR(static_cast<double>(ahead), static_cast<double>(meant), 2.0);

    open(set.url());
    const store::CountedLimit bucket{.numbers = bucket_, .identity = "d/b;tb", .id = 1};
    const store::CountedLimit window{
        .numbers = {.algorithm = Algorithm::fixed_window, .rate = 20, .period = kFill, .align = Align::first_hit},
        .identity = "d/w;fw",
        .id = 2};
    const store::CountedLimit log{
        .numbers = {.algorithm = Algorithm::sliding_log, .rate = 20, .period = kFill}, .identity = "d/l;sl", .id = 3};
    boost::asio::io_context io;
    metrics::Shard metrics;
    store::redis::RedisOptions patient = at(set.url());
    patient.timeout = 9s;
    auto store = store::redis::RedisStore::create(io, patient, metrics);
    ASSERT_TRUE(store);
    // One that spends all it has, of each kind, until the old master has nothing for it.
    const auto spend = [&](const store::CountedLimit& limit) {
      HeldCheck check({{.limit = &limit, .key = "spender"}});
      do {
        (void)run_until(io, [&] { return (*store)->ready(); });
        ask(io, **store, check);
      } while (check.failure != store::Failure::none || check.admitted);
      return check.decisions[0];
    };
    for (const store::CountedLimit* limit : {&bucket, &window, &log}) (void)spend(*limit);

    RedisServer& old_master = set.master();
    old_master.kill();
    set.await_switch_from(old_master);
    ASSERT_TRUE(load().hear(1));
    const auto switched = Clock::now();
    std::vector<std::uint64_t> before;
    for (const Load::Count& count : load().counts()) before.push_back(count.shared);
    // The longest that anybody is told to wait there: until the bucket would be full, and then one token; of a window,
    // which is believed one period ahead, until it has gone by.
    EXPECT_LE(spend(bucket).retry_after.value(), kFill + kToken);
    EXPECT_LE(spend(window).retry_after.value(), 2 * kFill);
    EXPECT_LE(spend(log).retry_after.value(), 2 * kFill);
    // Everybody is let in again.
    ASSERT_TRUE(wait_for([&] {
      for (std::size_t i = 0; i < before.size(); ++i) {
        if (load().counts()[i].shared == before[i]) return false;
      }
      return true;
    }));
    note("seconds from the switch until everybody was let in, of a bucket that fills in 2 s", seconds_since(switched));
    ASSERT_TRUE(load().hear(1'000));
    expect_untouched_replicas(set);
    // Nobody gains more than a burst.
    expect_bound(1);
  }
};

TEST_F(RedisClocks, TheNewMasterIsBehind) { fail_over(kApart, 0s); }

TEST_F(RedisClocks, TheNewMasterIsAhead) { fail_over(0s, kApart); }

}  // namespace
}  // namespace sluice::testing
