#include "store/redis/check_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "store/redis/key.h"
#include "tests/unit/redis/redis_test_util.h"

namespace sluice::store::redis {
namespace {

using testing::answer;
using testing::bucket;
using testing::bucket_state;
using testing::kNow;
using testing::parse;
using testing::TestCheck;
using testing::window_state;
using namespace std::chrono_literals;

std::string key_of(std::string_view identity, std::string_view key) {
  std::string name;
  append_redis_key(name, "sluice:", identity, key);
  return name;
}

TEST(RedisKey, TheFirstValueIsTheHashTag) {
  EXPECT_EQ(key_of("shop/user/path;tb", "42|%2Fx"), "sluice:{42}shop/user/path;tb|%2Fx");
  EXPECT_EQ(key_of("shop/user;tb", "42"), "sluice:{42}shop/user;tb");
  EXPECT_EQ(key_of("shop/user;tb", "%"), "sluice:{%}shop/user;tb");
}

TEST(CheckCall, Bytes) {
  const CountedLimit limit = bucket(10, 30);
  TestCheck check({{.limit = &limit, .key = "42", .cost = 2, .enforcement = Enforcement::quota}});
  Batch batch;
  ASSERT_TRUE(testing::add(batch, check));
  const std::string call = testing::call_of(batch);
  EXPECT_EQ(words_of_call(batch), 4U);
  // One limit, one key of it; key 1, quota and the last of its request, cost 2.
  const std::string request("\0\x01\0\x01\0\x01\0\x06\x02", 9);
  EXPECT_EQ(call, testing::bulk("1") + testing::bulk("sluice:{42}shop/user;tb") + testing::bulk(request) +
                      testing::bulk(bucket_state(30, 1, 100'000, 30, 0, 0).substr(0, 20)));
}

// Equal charges of distinct keys of one token bucket are told by their cost alone.
TEST(CheckCall, TheShortForm) {
  const CountedLimit limit = bucket(10, 30);
  const std::shared_ptr<const RedisLimit> compiled = *RedisLimit::compile(limit.numbers);
  const auto call_of = [&](const std::vector<store::Charge>& charges) {
    std::vector<std::unique_ptr<TestCheck>> checks;
    Batch batch;
    for (const store::Charge& charge : charges) {
      checks.push_back(std::make_unique<TestCheck>(std::vector{charge}));
      EXPECT_TRUE(batch.add(*checks.back(), {&compiled, 1}, "sluice:", Time{}, 0));
    }
    return testing::call_of(batch);
  };
  const auto is_short = [&](const std::vector<store::Charge>& charges) {
    return call_of(charges).find("\r\n\x07\x01") != std::string::npos;
  };
  EXPECT_NE(call_of({{.limit = &limit, .key = "a", .cost = 3}, {.limit = &limit, .key = "b", .cost = 3}})
                .find(testing::bulk(std::string("\x07\x01\0\x02\0\x03", 6))),
            std::string::npos);
  const auto pair = [&](std::uint64_t cost) {
    return std::vector<store::Charge>{{.limit = &limit, .key = "a", .cost = cost},
                                      {.limit = &limit, .key = "b", .cost = cost}};
  };
  EXPECT_TRUE(is_short(pair(254)));
  EXPECT_FALSE(is_short(pair(255)));
  EXPECT_FALSE(is_short(pair(0)));
  EXPECT_FALSE(is_short({{.limit = &limit, .key = "a"}, {.limit = &limit, .key = "a"}}));
  EXPECT_FALSE(is_short({{.limit = &limit, .key = "a"}, {.limit = &limit, .key = "b", .cost = 2}}));
  EXPECT_FALSE(
      is_short({{.limit = &limit, .key = "a"}, {.limit = &limit, .key = "b", .enforcement = Enforcement::shadow}}));
}

// One of them: the limit stands behind the cost.
TEST(CheckCall, TheShortestForm) {
  const CountedLimit limit = bucket(10, 30);
  const std::string head = bucket_state(30, 1, 100'000, 30, 0, 0).substr(0, 20);
  const auto is_shortest = [&](const CountedLimit& of, std::uint64_t cost, Enforcement enforcement) {
    TestCheck check({{.limit = &of, .key = "42", .cost = cost, .enforcement = enforcement}});
    Batch batch;
    EXPECT_TRUE(testing::add(batch, check));
    const std::string call = testing::call_of(batch);
    const bool is = call.find("\r\n\x08") != std::string::npos;
    EXPECT_EQ(words_of_call(batch), is ? 3U : 4U);
    if (is) {
      EXPECT_EQ(call, testing::bulk("1") + testing::bulk("sluice:{42}" + of.identity) +
                          testing::bulk("\x08" + std::string(1, static_cast<char>(cost)) + head));
    }
    return is;
  };
  EXPECT_TRUE(is_shortest(limit, 1, Enforcement::enforce));
  EXPECT_TRUE(is_shortest(limit, 254, Enforcement::enforce));
  EXPECT_FALSE(is_shortest(limit, 255, Enforcement::enforce));
  EXPECT_FALSE(is_shortest(limit, 0, Enforcement::enforce));
  EXPECT_FALSE(is_shortest(limit, 1, Enforcement::shadow));
  const CountedLimit leaky{.numbers = {.algorithm = Algorithm::leaky_bucket, .rate = 10, .queue = 29},
                           .identity = "shop/user;lb"};
  EXPECT_FALSE(is_shortest(leaky, 1, Enforcement::enforce));
}

TEST(CheckCall, TheCostThatNeverFitsIsExact) {
  const CountedLimit limit = bucket(10, kMaxTokens);
  TestCheck check({{.limit = &limit, .key = "42", .cost = kNeverFits}});
  Batch batch;
  ASSERT_TRUE(testing::add(batch, check));
  std::string request("\0\x01\0\x01\0\x01\0\x04\xff", 9);
  append_packed<7>(request, 1'000'000'000'000'001);
  EXPECT_NE(testing::call_of(batch).find(testing::bulk(request)), std::string::npos);
  ASSERT_EQ(testing::read_answer(answer(kNow, "0", {"-"}), check), Failure::none);
  EXPECT_TRUE(check.decisions[0].retry_after.is_never());
  EXPECT_EQ(check.decisions[0].remaining, kMaxTokens);
}

Failure read(const std::string& bytes, TestCheck& check) { return testing::read_answer(bytes, check); }

TEST(CheckCall, FiguresOfAFreshKey) {
  const CountedLimit limit = bucket(10, 30);
  TestCheck check({{.limit = &limit, .key = "42", .cost = 2}});
  ASSERT_EQ(read(answer(kNow, "1", {"-"}), check), Failure::none);
  EXPECT_TRUE(check.admitted);
  EXPECT_EQ(check.decisions[0].remaining, 28U);
  EXPECT_EQ(check.decisions[0].reset_after, Wait(200ms));
  EXPECT_EQ(check.decisions[0].source, Source::redis);
}

TEST(CheckCall, StatesWithOtherNumbersAreConverted) {
  const CountedLimit limit = bucket(10, 30);
  TestCheck check({{.limit = &limit, .key = "42"}});
  // 7 a minute, burst 7: 3 1/2 tokens at this moment; half a token stays half a token.
  ASSERT_EQ(read(answer(kNow, "1", {bucket_state(7, 7, 60'000'000, 3, 30'000'000, kNow)}), check), Failure::none);
  EXPECT_EQ(check.decisions[0].remaining, 2U);
  EXPECT_EQ(check.decisions[0].reset_after, Wait(2750ms));
  // Full stays full.
  ASSERT_EQ(read(answer(kNow, "1", {bucket_state(7, 7, 60'000'000, 7, 0, kNow)}), check), Failure::none);
  EXPECT_EQ(check.decisions[0].remaining, 29U);
}

TEST(CheckCall, AnAnswerOfAnotherShapeIsAFailure) {
  const CountedLimit limit = bucket(10, 30);
  TestCheck check({{.limit = &limit, .key = "42"}});
  const std::string good = bucket_state(30, 1, 100'000, 3, 0, kNow);
  ASSERT_EQ(read(answer(kNow, "1", {good}), check), Failure::none);
  const std::vector<std::string> wrong = {
      "+OK\r\n",
      ":1\r\n",
      "$-1\r\n",
      "*0\r\n",
      answer(kNow, "1", {}),
      answer(kNow, "1", {good, good}),
      answer(-1, "1", {good}),
      answer(std::numeric_limits<std::int64_t>::max(), "1", {good}),
      answer(kNow, "", {good}),
      answer(kNow, "2", {good}),
      answer(kNow, "11", {good}),
      answer(kNow, "x", {good}),
      "*3\r\n:1\r\n" + testing::bulk("1") + "-WRONGTYPE x\r\n",
      // The verdict is not what the same arithmetic gives here.
      answer(kNow, "0", {good}),
      answer(kNow, "1", {bucket_state(30, 1, 100'000, 0, 99'999, kNow)}),
      answer(kNow, "1", {""}),
      answer(kNow, "1", {good.substr(1)}),
      answer(kNow, "1", {good + "x"}),
      answer(kNow, "1", {"\x02" + good.substr(1)}),
      answer(kNow, "1", {window_state('\0', 1'000'000, 0, 1, 0)}),
      answer(kNow, "1", {bucket_state(30, 1, 100'000, 31, 0, kNow)}),
      answer(kNow, "1", {bucket_state(30, 1, 100'000, 30, 1, kNow)}),
      answer(kNow, "1", {bucket_state(30, 1, 100'000, 3, 100'000, kNow)}),
      answer(kNow, "1", {bucket_state(30, 1, 100'000, 3, (std::uint64_t{1} << 48U) - 1, kNow)}),
      answer(kNow, "1", {bucket_state(30, 1, 100'000, -1'000'000'000'000'001, 0, kNow)}),
      answer(kNow, "1", {bucket_state(30, 1, 100'000, 3, 0, std::int64_t{1} << 53)}),
      answer(kNow, "1", {bucket_state(30, 1'000'000'000'001, 100'000, 3, 0, kNow)}),
      answer(kNow, "1", {bucket_state(30, 1, 0, 3, 0, kNow)}),
      answer(kNow, "1", {bucket_state(0, 1, 100'000, 0, 0, kNow)}),
      "*3\r\n" + testing::bulk("1") + testing::bulk("1") + testing::bulk(good),
      "*3\r\n:1\r\n:1\r\n" + testing::bulk(good),
      "*3\r\n:1\r\n" + testing::bulk("1") + ":1\r\n",
  };
  for (const std::string& bytes : wrong) EXPECT_EQ(read(bytes, check), Failure::bad_answer) << bytes;
  EXPECT_EQ(read("-OOM x\r\n", check), Failure::out_of_memory);
}

TEST(CheckCall, ATimeAheadIsBelievedUpToTheTimeToFull) {
  const CountedLimit limit = bucket(10, 30);
  TestCheck check({{.limit = &limit, .key = "42", .cost = 4}});
  const auto wait_at = [&](std::int64_t at) {
    EXPECT_EQ(read(answer(kNow, "0", {bucket_state(30, 1, 100'000, 3, 0, at)}), check), Failure::none);
    return check.decisions[0].retry_after;
  };
  // The wait begins at the later time, whichever it is.
  EXPECT_EQ(wait_at(kNow), Wait(100ms));
  EXPECT_EQ(wait_at(kNow + 2'700'000), Wait(2'800ms));
  EXPECT_EQ(wait_at(kNow + 3'600'000'000), Wait(2'800ms));
}

}  // namespace
}  // namespace sluice::store::redis
