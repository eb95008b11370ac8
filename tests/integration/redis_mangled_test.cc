// Values that are almost states of a limit: bytes of them are set to their ends, flipped or taken away. The script and
// its twin agree on what they say, or on that they say nothing; whatever it is, it is a matter of that key alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
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
const std::string kKey = "sluice:{k}shop/x";

class RedisMangled : public ::testing::TestWithParam<Limit> {
 protected:
  static void SetUpTestSuite() {
    log::configure(log::Level::error, log::Format::text);
    server_ = std::make_unique<RedisServer>();
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    const char* given = std::getenv("SLUICE_SEED");
    const auto seed = given != nullptr ? static_cast<std::uint32_t>(std::atoi(given)) : 1U;
    RecordProperty("seed", static_cast<int>(seed));
    random_.seed(seed);
    auto store = RedisStore::create(io_, {.url = server_->url(), .timeout = 5s, .script = &script_}, metrics_);
    ASSERT_TRUE(store);
    store_ = *std::move(store);
  }

  std::size_t below(std::size_t bound) { return random_() % bound; }
  struct Answer {
    Failure failure;
    bool admitted;
  };
  Answer ask(std::uint64_t cost) {
    HeldCheck check({{.limit = &limit_, .key = "k", .cost = cost}});
    testing::ask(io_, *store_, check);
    return {check.failure, check.admitted};
  }
  void mangle(std::string& value) {
    if (value.empty() || below(20) == 0) {
      value.resize(below(64), 'x');
      return;
    }
    if (below(4) == 0) {  // a number at one of its ends
      const std::size_t at = below(value.size());
      const std::size_t size = std::min<std::size_t>(5 + below(4), value.size() - at);
      value.replace(at, size, size, below(2) == 0 ? '\xff' : '\0');
      return;
    }
    for (std::size_t n = 1 + below(3); n > 0; --n) {
      constexpr std::string_view ends("\x00\x01\x7f\x80\xfe\xff", 6);
      char& byte = value[below(value.size())];
      byte = below(2) == 0 ? ends[below(ends.size())] : static_cast<char>(random_());
    }
  }
  // Puts a mangled value in the place of the key's; none has an expiry.
  void mangle_key() {
    const auto type = server_->command({"TYPE", kKey});
    if (text_of(*type) != "zset") {
      std::string value(text_of(*server_->command({"GET", kKey})));
      mangle(value);
      server_->command({"SET", kKey, value});
      return;
    }
    const auto members = server_->command({"ZRANGE", kKey, "0", "-1", "WITHSCORES"});
    const std::size_t at = 2 * below(members->elements / 2);
    std::string member(text_of(*members->element[at]));
    std::string score(text_of(*members->element[at + 1]));
    server_->command({"ZREM", kKey, member});
    static const std::vector<std::string> scores = {
        "-1", "0", "-0.5", "inf", "-inf", "9223372036854775807", "1767225600000000.5", "1767225600000000", "-2"};
    switch (below(4)) {
      case 0:
        score = scores[below(scores.size())];
        break;
      case 1:  // as if it had never been
        return;
      default:
        mangle(member);
    }
    server_->command({"ZADD", kKey, score, member});
    server_->command({"PERSIST", kKey});
  }

  static inline std::unique_ptr<RedisServer> server_;
  const Script script_ =
      make_check_script("local now, shortest_expiry, trusted_lead = " + std::to_string(kNewYear) + ", 3600000, 0\n");
  std::mt19937 random_;
  boost::asio::io_context io_;
  metrics::Shard metrics_;
  std::unique_ptr<RedisStore> store_;
  const CountedLimit limit_{.numbers = GetParam(), .identity = "shop/x"};
};

TEST_P(RedisMangled, IsForeignOrRead) {
  int read = 0;
  int foreign = 0;
  for (int i = 0; i < 400; ++i) {
    server_->command({"DEL", kKey});
    for (std::size_t n = 1 + below(4); n > 0; --n) ask(1 + below(2));
    mangle_key();
    const auto before = server_->command({"DUMP", kKey});
    for (const std::uint64_t cost : {0U, 1U}) {
      const Answer check = ask(cost);
      if (check.failure != Failure::none) {
        ASSERT_EQ(check.failure, Failure::foreign_value) << i;
        // Of many slots the script leaves it to the caller that they make up their sum.
        if (limit_.numbers.slots == 1) {
          ASSERT_EQ(text_of(*server_->command({"DUMP", kKey})), text_of(*before)) << i;
        }
        ++foreign;
        break;
      }
      ++read;
      const bool is_bucket =
          limit_.numbers.algorithm == Algorithm::token_bucket || limit_.numbers.algorithm == Algorithm::leaky_bucket;
      if (cost > 0 && check.admitted && !is_bucket) {
        ASSERT_NE(server_->integer({"PTTL", kKey}), -1) << i;
      }
    }
  }
  EXPECT_TRUE(store_->ready());
  EXPECT_GT(read, 20);
  EXPECT_GT(foreign, 20);
}

INSTANTIATE_TEST_SUITE_P(
    OfEach, RedisMangled,
    ::testing::Values(Limit{.algorithm = Algorithm::token_bucket, .rate = 7, .period = 3s, .burst = 10},
                      Limit{.algorithm = Algorithm::leaky_bucket, .rate = 7, .period = 3s, .queue = 9},
                      Limit{.algorithm = Algorithm::fixed_window, .rate = 10, .period = 3s, .align = Align::epoch},
                      Limit{.algorithm = Algorithm::fixed_window, .rate = 10, .period = 3s, .align = Align::first_hit},
                      Limit{.algorithm = Algorithm::sliding_window, .rate = 10, .period = 3s},
                      Limit{.algorithm = Algorithm::sliding_window, .rate = 10, .period = 3s, .slots = 5},
                      Limit{.algorithm = Algorithm::sliding_log, .rate = 10, .period = 3s},
                      Limit{.algorithm = Algorithm::concurrency, .rate = 10, .ttl = 3s}));

}  // namespace
}  // namespace sluice::store::redis
