// However a bucket's key came to have no expiry, or a wrong one: a charge that writes it whole sets it again, and that
// is at the latest the first one 0.9 s after the bucket was full, or the one that leaves it 0.9 s farther from full.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "store/redis/redis_store.h"
#include "store/redis/script.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/store_asker.h"

namespace sluice::store::redis {
namespace {

using namespace std::chrono_literals;
using testing::HeldCheck;
using testing::RedisServer;

// 2026-01-01 00:00 UTC.
constexpr std::int64_t kNewYear = 1'767'225'600'000'000;

class ExpiryOfABucket : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    log::configure(log::Level::error, log::Format::text);
    server_ = std::make_unique<RedisServer>();
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override { server_->command({"FLUSHALL"}); }

  static constexpr std::string_view kKey = "sluice:{k}shop/user;tb";
  static constexpr std::size_t kKeptAt = 40;
  static constexpr int kBytes = 7;

  // As the server has the time, and so that one charge goes the short way and the other the general one.
  void take(std::uint64_t cost, std::int64_t at = kNewYear, bool in_general = false) {
    began_ = std::chrono::steady_clock::now();
    const Script script =
        make_check_script("local now, shortest_expiry, trusted_lead = " + std::to_string(at) + ", 1, 0\n", style_);
    auto store = RedisStore::create(io_, {.url = server_->url(), .timeout = 5s, .script = &script}, metrics_);
    ASSERT_TRUE(store);
    const CountedLimit other{.numbers = limit_.numbers, .identity = "shop/other;tb"};
    std::vector<Charge> charges = {{.limit = &limit_, .key = "k", .cost = cost}};
    if (in_general) charges.push_back({.limit = &other, .key = "k", .cost = 0});
    HeldCheck check(charges);
    testing::ask(io_, **store, check);
    EXPECT_EQ(check.failure, Failure::none);
    EXPECT_TRUE(check.admitted);
  }
  [[nodiscard]] long long ttl() const { return server_->integer({"PTTL", std::string(kKey)}); }
  // As the last take() set it, or a little more: what has gone by since then, on a busy machine, is added.
  [[nodiscard]] long long set_ttl() const {
    const long long left = ttl();
    if (left < 0) return left;
    return left + std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began_).count();
  }
  void persist() { EXPECT_EQ(server_->integer({"PERSIST", std::string(kKey)}), 1); }
  void set_kept(std::int64_t microseconds) {
    std::string bytes;
    for (int i = 0; i < kBytes; ++i) bytes.push_back(static_cast<char>(microseconds >> (8 * i)));
    server_->command({"SETRANGE", std::string(kKey), std::to_string(kKeptAt), bytes});
  }

  static inline std::unique_ptr<RedisServer> server_;
  boost::asio::io_context io_;
  metrics::Shard metrics_;
  std::chrono::steady_clock::time_point began_;
  CountedLimit limit_{.numbers = {.algorithm = Algorithm::token_bucket, .rate = 10, .period = 1s, .burst = 1'000},
                      .identity = "shop/user;tb"};
  ScriptStyle style_ = ScriptStyle::fast;
};

TEST_F(ExpiryOfABucket, IsSetWhereAForeignTimeSaysThatTheKeyIsKept) {
  for (const ScriptStyle style : {ScriptStyle::fast, ScriptStyle::literal}) {
    for (const bool in_general : {false, true}) {
      for (const std::int64_t ahead : {21'000'001LL, 3'600'000'000LL, (1LL << 56) - 1 - kNewYear}) {
        style_ = style;
        server_->command({"FLUSHALL"});
        take(200);
        persist();
        set_kept(kNewYear + ahead);
        take(1, kNewYear, in_general);
        EXPECT_GT(set_ttl(), 20'000) << ahead;
        EXPECT_LE(ttl(), 21'000) << ahead;
      }
    }
  }
}

TEST_F(ExpiryOfABucket, IsSetAgainWhereItWasTakenAway) {
  for (const bool in_general : {false, true}) {
    server_->command({"FLUSHALL"});
    take(200);
    persist();
    for (int i = 0; i < 7; ++i) take(1, kNewYear, in_general);
    EXPECT_EQ(ttl(), -1);
    take(1, kNewYear, in_general);  // 0.8 s' worth
    EXPECT_GT(set_ttl(), 20'800);

    persist();
    take(1, kNewYear + 20'800'000 + 800'000, in_general);  // 0.8 s after it was full
    EXPECT_GT(set_ttl(), 0);
  }
}

TEST_F(ExpiryOfABucket, IsSetAgainWhereItWasMadeShorter) {
  take(200);
  EXPECT_EQ(server_->integer({"PEXPIRE", std::string(kKey), "5000"}), 1);
  take(8);
  EXPECT_GT(set_ttl(), 20'800);
}

// A leaky bucket is the same.
TEST_F(ExpiryOfABucket, OfALeakyBucket) {
  limit_.numbers = {.algorithm = Algorithm::leaky_bucket, .rate = 10, .period = 1s, .queue = 999};
  take(200);
  persist();
  set_kept(kNewYear + 3'600'000'000);
  take(1);
  EXPECT_GT(set_ttl(), 20'000);
  EXPECT_LE(ttl(), 21'000);
}

// A server whose clock is behind that of the one before: the expiry goes by the other's, and comes nearer with the cut.
TEST_F(ExpiryOfABucket, ComesNearerWhenAStoredTimeIsCut) {
  for (const std::uint64_t cost : {0U, 1U}) {
    for (const std::int64_t lead : {20'050'000LL, 21'200'000LL, 60'000'000LL}) {
      server_->command({"FLUSHALL"});
      take(200, kNewYear + lead);
      EXPECT_EQ(server_->integer({"PEXPIRE", std::string(kKey), std::to_string(lead / 1'000 + 20'800)}), 1);
      take(cost);
      // Believed as far as 20 s ahead, and full after 20 s more.
      const long long full = 40'000 + static_cast<long long>(cost) * 100;
      EXPECT_GT(set_ttl(), full) << lead;
      EXPECT_LE(ttl(), full + 1'000) << lead;
    }
  }
}

}  // namespace
}  // namespace sluice::store::redis
