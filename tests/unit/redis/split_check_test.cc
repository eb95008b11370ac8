#include "store/redis/split_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "store/admission.h"
#include "tests/unit/redis/redis_test_util.h"

namespace sluice::store::redis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestCheck;

constexpr std::int64_t kAt = 1'767'225'600'000'000'000;  // ns

CountedLimit named(const char* identity, const Limit& numbers) { return {.numbers = numbers, .identity = identity}; }

const CountedLimit kBucket =
    named("b", {.algorithm = Algorithm::token_bucket, .rate = 1, .period = std::chrono::hours(1), .burst = 10});
const CountedLimit kWindow =
    named("w", {.algorithm = Algorithm::fixed_window, .rate = 10, .period = std::chrono::hours(24)});
const CountedLimit kLog =
    named("l", {.algorithm = Algorithm::sliding_log, .rate = 10, .period = std::chrono::hours(1)});
const CountedLimit kLeaky =
    named("q", {.algorithm = Algorithm::leaky_bucket, .rate = 1, .period = std::chrono::hours(1), .queue = 9});
const CountedLimit kLeases = named("c", {.algorithm = Algorithm::concurrency, .rate = 10});

// Servers that hold ten tokens a key, as many as all the limits above have, and never refill. What they do with a step
// and what is heard of it are two things, and a test decides both.
class Servers : public SplitCheck::Owner {
 public:
  struct GivenBack {
    const SplitCheck::Part* part;
    std::string key;
    std::optional<Verb> verb;
  };

  Failure submit_part(SplitCheck& split, SplitCheck::Part& part) override {
    submitted.push_back(&part);
    const Failure failure = refuse ? refuse(split, part) : Failure::none;
    if (failure == Failure::none) pending.push_back(&part);
    return failure;
  }
  void give_back(const SplitCheck& /*split*/, const SplitCheck::Part& part, std::size_t charge,
                 const std::optional<Verb>& verb) override {
    given_back.push_back({&part, key_of(part.own_charges[charge]), verb});
    if (on_give_back) on_give_back(part, charge, verb);
  }
  void split_done(SplitCheck& split) override {
    done.push_back(&split);
    Check* const outer = split.outer();
    split.clear();
    if (outer != nullptr) outer->complete();
  }

  static std::string key_of(const Charge& charge) { return charge.limit->identity + ":" + std::string(charge.key); }

  // A step is all or nothing; shadows don't count.
  void execute(SplitCheck::Part& part) {
    Admission admission;
    for (std::size_t i = 0; i < part.own_charges.size(); ++i) {
      const Charge& charge = part.own_charges[i];
      const std::uint64_t left = 10 - taken[key_of(charge)];
      part.decisions[i] = {.allowed = charge.cost <= left, .limit = 10, .remaining = left};
      part.untaken[i] = part.decisions[i];
      admission.add(charge.enforcement, part.decisions[i].allowed);
    }
    part.admitted = admission.admitted();
    for (std::size_t i = 0; i < part.own_charges.size(); ++i) {
      const Charge& charge = part.own_charges[i];
      if (!part.admitted || !part.decisions[i].allowed || charge.cost == 0) continue;
      part.decisions[i].remaining -= charge.cost;
      if (part.verb != nullptr) continue;
      taken[key_of(charge)] += charge.cost;
      if (charge.limit->numbers.algorithm == Algorithm::concurrency) part.leases[i] = ++last_lease;
    }
  }
  void tell(SplitCheck::Part& part, Failure failure) {
    std::erase(pending, &part);
    part.failure = failure;
    part.answered_at = failure == Failure::none ? kAt : 0;
    part.complete();
  }
  void answer(SplitCheck::Part& part) {
    execute(part);
    tell(part, Failure::none);
  }
  void answer_all() {
    while (!pending.empty()) answer(*pending.front());
  }

  std::function<Failure(SplitCheck&, SplitCheck::Part&)> refuse;
  std::function<void(const SplitCheck::Part&, std::size_t, const std::optional<Verb>&)> on_give_back;
  std::map<std::string, std::uint64_t> taken;
  std::vector<SplitCheck::Part*> submitted;
  std::vector<SplitCheck::Part*> pending;
  std::vector<GivenBack> given_back;
  std::vector<SplitCheck*> done;
  std::uint64_t last_lease = 0;

 protected:
  ~Servers() = default;
};

class SplitCheckTest : public ::testing::Test, protected Servers {
 protected:
  void start(TestCheck& check, const std::vector<std::uint64_t>& groups) {
    check.completed = 0;
    split_.start(check, check.limits, groups, Time{}, 0);
    split_.go();
  }
  SplitCheck split_{*this};
};

TEST_F(SplitCheckTest, AllFit) {
  TestCheck check({{.limit = &kBucket, .key = "a", .cost = 3}, {.limit = &kWindow, .key = "b", .cost = 4}});
  start(check, {1, 2});
  EXPECT_EQ(pending.size(), 2U);
  EXPECT_EQ(check.completed, 0);
  answer_all();
  EXPECT_EQ(check.completed, 1);
  EXPECT_TRUE(check.admitted);
  EXPECT_EQ(check.decisions[0].remaining, 7U);
  EXPECT_EQ(check.decisions[1].remaining, 6U);
  EXPECT_EQ(check.decisions[1].which, 1U);
  EXPECT_THAT(given_back, IsEmpty());
}

TEST_F(SplitCheckTest, WhatSharesAGroupIsOneStep) {
  TestCheck check({{.limit = &kBucket, .key = "a"}, {.limit = &kWindow, .key = "b"}, {.limit = &kLog, .key = "a"}});
  start(check, {1, 2, 1});
  ASSERT_EQ(pending.size(), 2U);
  EXPECT_EQ(pending[0]->own_charges.size(), 2U);
  answer_all();
  EXPECT_EQ(check.decisions[2].which, 2U);
}

TEST_F(SplitCheckTest, ADenialGivesBackWhatOthersTook) {
  taken["w:b"] = 8;
  TestCheck check({{.limit = &kBucket, .key = "a", .cost = 3},
                   {.limit = &kWindow, .key = "b", .cost = 4},
                   {.limit = &kLeases, .key = "c", .cost = 2}});
  start(check, {1, 2, 3});
  answer_all();
  EXPECT_FALSE(check.admitted);
  EXPECT_EQ(check.failure, Failure::none);
  // The figures are those of a request that took nothing.
  EXPECT_TRUE(check.decisions[0].allowed);
  EXPECT_EQ(check.decisions[0].remaining, 10U);
  EXPECT_FALSE(check.decisions[1].allowed);
  EXPECT_EQ(check.decisions[2].remaining, 10U);
  ASSERT_EQ(given_back.size(), 2U);
  EXPECT_EQ(given_back[0].key, "b:a");
  EXPECT_EQ(given_back[0].verb->kind, Verb::Kind::refund);
  EXPECT_EQ(given_back[0].verb->amount, 3U);
  EXPECT_EQ(given_back[1].key, "c:c");
  EXPECT_EQ(given_back[1].verb->kind, Verb::Kind::release);
  EXPECT_EQ(given_back[1].verb->amount, last_lease);
  EXPECT_EQ(given_back[1].verb->at, 2);  // the lease's weight
}

// Row 63, over slots: what is given back of a window names the time at which it was taken, so that it is nothing to the
// window after (public_report_63 of the script's own tests shows that it is).
TEST_F(SplitCheckTest, public_report_63) {
  for (const CountedLimit* const limit : {&kWindow, &kLog, &kBucket}) {
    given_back.clear();
    taken.clear();
    taken["b:full"] = 10;
    TestCheck check({{.limit = limit, .key = "a", .cost = 1}, {.limit = &kBucket, .key = "full", .cost = 1}});
    start(check, {1, 2});
    answer_all();
    EXPECT_FALSE(check.admitted);
    ASSERT_EQ(given_back.size(), 1U);
    ASSERT_TRUE(given_back[0].verb->at);
    EXPECT_EQ(*given_back[0].verb->at, kAt);
  }
}

// Without an answer it may have been charged or not: it is neither charged again nor given back.
TEST_F(SplitCheckTest, AStepWithoutAnAnswerIsLeftAsItIs) {
  TestCheck check({{.limit = &kBucket, .key = "a", .cost = 3}, {.limit = &kWindow, .key = "b", .cost = 4}});
  start(check, {1, 2});
  answer(*pending[0]);
  execute(*pending[0]);
  tell(*pending[0], Failure::timeout);
  EXPECT_EQ(check.failure, Failure::timeout);
  EXPECT_EQ(check.completed, 1);
  EXPECT_EQ(submitted.size(), 2U);
  ASSERT_EQ(given_back.size(), 1U);
  EXPECT_EQ(given_back[0].key, "b:a");
}

TEST_F(SplitCheckTest, AStepThatFailsAtOnceLeavesTheOthersGivenBack) {
  refuse = [&](SplitCheck&, SplitCheck::Part& part) { return part.group == 1 ? Failure::circuit_open : Failure::none; };
  TestCheck check({{.limit = &kBucket, .key = "a"}, {.limit = &kWindow, .key = "b"}});
  start(check, {1, 2});
  answer_all();
  EXPECT_EQ(check.failure, Failure::circuit_open);
  EXPECT_EQ(given_back.size(), 1U);
  given_back.clear();
  refuse = [](SplitCheck&, SplitCheck::Part&) { return Failure::unreachable; };
  start(check, {1, 2});
  EXPECT_EQ(check.failure, Failure::unreachable);
  EXPECT_EQ(check.completed, 1);
  EXPECT_THAT(given_back, IsEmpty());
}

TEST_F(SplitCheckTest, SlotsOfLeakyBucketsAreTakenLastAndOnlyWhenTheRestIsGranted) {
  TestCheck check({{.limit = &kLeaky, .key = "a", .cost = 3},
                   {.limit = &kBucket, .key = "b", .cost = 6},
                   {.limit = &kLeaky, .key = "c", .cost = 2}});
  start(check, {1, 2, 3});
  ASSERT_EQ(pending.size(), 1U);
  EXPECT_EQ(pending[0]->group, 2U);
  answer(*pending[0]);
  ASSERT_EQ(pending.size(), 1U);
  EXPECT_EQ(pending[0]->group, 1U);
  EXPECT_EQ(pending[0]->verb, nullptr);
  answer(*pending[0]);
  ASSERT_EQ(pending.size(), 1U);
  answer(*pending[0]);
  EXPECT_TRUE(check.admitted);
  // Now the bucket has 4 left: the queues are only looked at.
  start(check, {1, 2, 3});
  answer(*pending[0]);
  ASSERT_EQ(pending.size(), 1U);
  EXPECT_NE(pending[0]->verb, nullptr);
  answer_all();
  EXPECT_FALSE(check.admitted);
  EXPECT_EQ(taken["q:a"], 3U);
  EXPECT_EQ(taken["q:c"], 2U);
  EXPECT_THAT(given_back, IsEmpty());
}

TEST_F(SplitCheckTest, ALeakyBucketThatRefusesLastLeavesAnothersSlotsTaken) {
  taken["q:c"] = 10;
  TestCheck check({{.limit = &kLeaky, .key = "a", .cost = 3}, {.limit = &kLeaky, .key = "c", .cost = 2}});
  start(check, {1, 3});
  answer_all();
  EXPECT_FALSE(check.admitted);
  // Told as a loss: given back, they could be given twice.
  ASSERT_EQ(given_back.size(), 1U);
  EXPECT_EQ(given_back[0].verb, std::nullopt);
}

TEST_F(SplitCheckTest, QuotasDenyOnlyTogether) {
  taken["b:a"] = 10;
  TestCheck check({{.limit = &kBucket, .key = "a", .cost = 1, .enforcement = Enforcement::quota},
                   {.limit = &kBucket, .key = "b", .cost = 4, .enforcement = Enforcement::quota},
                   {.limit = &kWindow, .key = "c", .cost = 6, .enforcement = Enforcement::shadow}});
  start(check, {1, 2, 3});
  answer_all();
  EXPECT_TRUE(check.admitted);
  EXPECT_THAT(given_back, IsEmpty());
  taken["b:b"] = 10;
  start(check, {1, 2, 3});
  taken["w:c"] = 0;
  answer_all();
  EXPECT_FALSE(check.admitted);
  ASSERT_EQ(given_back.size(), 1U);
  EXPECT_EQ(given_back[0].key, "w:c");
}

TEST_F(SplitCheckTest, APeekTakesNothing) {
  const Verb peek = Verb::peek();
  TestCheck check({{.limit = &kBucket, .key = "a", .cost = 3}, {.limit = &kLeaky, .key = "b", .cost = 11}});
  check.verb = &peek;
  start(check, {1, 2});
  for (const SplitCheck::Part* part : pending) EXPECT_NE(part->verb, nullptr);
  answer_all();
  EXPECT_FALSE(check.admitted);
  EXPECT_TRUE(check.decisions[0].allowed);
  EXPECT_THAT(given_back, IsEmpty());
  EXPECT_EQ(taken["b:a"], 0U);
}

// The caller's limits and keys may be gone by the time that something is given back.
TEST_F(SplitCheckTest, IsSeenThroughWithoutItsCaller) {
  taken["w:b"] = 10;
  {
    auto limit = std::make_unique<CountedLimit>(kBucket);
    auto key = std::make_unique<std::string>("a key of more than a few bytes, as short ones hide mistakes");
    TestCheck check({{.limit = limit.get(), .key = *key, .cost = 3}, {.limit = &kWindow, .key = "b", .cost = 4}});
    start(check, {1, 2});
    split_.withdraw();
  }
  answer_all();
  ASSERT_EQ(given_back.size(), 1U);
  EXPECT_EQ(given_back[0].key, "b:a key of more than a few bytes, as short ones hide mistakes");
  EXPECT_THAT(done, ElementsAre(&split_));
}

// -- any answers at all -----------------------------------------------------------------------------------------------

// Many requests at once over few keys; each step is answered, refused, fails, or is carried out and not heard of; what
// is given back may be lost, too.
class AnyAnswers : public ::testing::TestWithParam<unsigned>, protected Servers {
 protected:
  // A request, and what became of each of its charges at the servers.
  struct Request {
    Request(Servers& owner, std::vector<Charge> charges) : split(owner), check(std::move(charges)) {}
    SplitCheck split;
    TestCheck check;
    std::vector<std::uint64_t> groups;
    std::map<std::string, int> steps;       // by key: how often a step that takes was submitted
    std::map<std::string, int> given_back;  // by key: how often it was given back
    std::map<std::string, std::uint64_t> charged;
    std::map<std::string, bool> is_unknown;
    bool is_withdrawn = false;
  };

  std::size_t pick(std::size_t below) { return random_() % below; }

  std::unique_ptr<Request> make_request() {
    static const CountedLimit* const limits[] = {&kBucket, &kWindow, &kLog, &kLeases, &kLeaky};
    std::vector<Charge> charges;
    std::vector<std::uint64_t> groups;
    for (std::size_t key = 0; key < 6; ++key) {
      if (pick(2) == 0) continue;
      const CountedLimit* const limit = limits[pick(8) == 0 ? 4 : key % 4];
      charges.push_back({.limit = limit,
                         .key = kKeys[key],
                         .cost = pick(4),
                         .enforcement = pick(4) == 0 ? static_cast<Enforcement>(pick(3)) : Enforcement::enforce});
      groups.push_back(1 + key / 2);
    }
    if (charges.empty()) return make_request();
    auto request = std::make_unique<Request>(static_cast<Servers&>(*this), std::move(charges));
    request->groups = std::move(groups);
    return request;
  }
  Request& request_of(const SplitCheck::Part& part) {
    return **std::ranges::find_if(requests_, [&](const auto& request) {
      for (std::size_t i = 0; i < request->split.size(); ++i) {
        if (&request->split.part(i) == &part) return true;
      }
      return false;
    });
  }
  void note_charges(SplitCheck::Part& part, bool is_heard) {
    Request& request = request_of(part);
    const auto before = taken;
    execute(part);
    for (const Charge& charge : part.own_charges) {
      const std::string key = key_of(charge);
      request.charged[key] += taken[key] - (before.contains(key) ? before.at(key) : 0);
      request.is_unknown[key] = !is_heard;
      EXPECT_LE(taken[key], 10U);
    }
  }
  void step() {
    SplitCheck::Part& part = *pending[pick(pending.size())];
    switch (pick(10)) {
      case 0:
        return tell(part, Failure::server_error);
      case 1:
        return tell(part, Failure::timeout);
      case 2:
        note_charges(part, false);
        return tell(part, Failure::lost);
      default:
        note_charges(part, true);
        return tell(part, Failure::none);
    }
  }

  static constexpr const char* kKeys[] = {"a", "b", "c", "d", "e", "f"};
  std::mt19937 random_{GetParam()};
  std::vector<std::unique_ptr<Request>> requests_;
};

TEST_P(AnyAnswers, NothingIsChargedForADeniedRequestAndNothingTwice) {
  std::map<std::string, std::uint64_t> lost;  // given back in vain, or slots
  refuse = [&](SplitCheck&, SplitCheck::Part& part) {
    Request& request = request_of(part);
    for (const Charge& charge : part.own_charges) {
      if (part.verb == nullptr) ++request.steps[key_of(charge)];
    }
    return pick(20) == 0 ? Failure::circuit_open : Failure::none;
  };
  on_give_back = [&](const SplitCheck::Part& part, std::size_t charge, const std::optional<Verb>& verb) {
    const std::string key = key_of(part.own_charges[charge]);
    const std::uint64_t cost = part.own_charges[charge].cost;
    ++request_of(part).given_back[key];
    EXPECT_EQ(verb.has_value(), part.own_charges[charge].limit->numbers.algorithm != Algorithm::leaky_bucket);
    if (!verb || pick(10) == 0) {
      lost[key] += cost;
    } else {
      ASSERT_GE(taken[key], cost);
      taken[key] -= cost;
    }
  };
  std::map<std::string, std::uint64_t> kept;  // what is rightly charged
  for (int round = 0; round < 300; ++round) {
    taken.clear();
    lost.clear();
    kept.clear();
    requests_.clear();
    done.clear();
    for (std::size_t i = 0; i < 6; ++i) {
      requests_.push_back(make_request());
      Request& request = *requests_.back();
      request.split.start(request.check, request.check.limits, request.groups, Time{}, 0);
      request.split.go();
      while (!pending.empty() && pick(3) != 0) step();
      if (request.check.completed == 0 && pick(10) == 0) {
        request.split.withdraw();
        request.is_withdrawn = true;
      }
    }
    while (!pending.empty()) step();
    ASSERT_EQ(done.size(), requests_.size());
    for (const auto& request : requests_) {
      ASSERT_EQ(request->check.completed, request->is_withdrawn ? 0 : 1);
      for (const Charge& charge : request->check.charges) {
        const std::string key = key_of(charge);
        EXPECT_LE(request->steps[key], 1);
        EXPECT_LE(request->charged[key], charge.cost);
        EXPECT_LE(request->given_back[key], 1);
        if (request->given_back[key] > 0) {
          EXPECT_GT(request->charged[key], 0U) << key;
          EXPECT_FALSE(request->is_unknown[key]) << key;
        } else {
          kept[key] += request->charged[key];
        }
        if (request->is_withdrawn) continue;
        if (request->check.failure == Failure::none && request->check.admitted) {
          EXPECT_EQ(request->given_back[key], 0);
          if (charge.enforcement == Enforcement::enforce) {
            EXPECT_EQ(request->charged[key], charge.cost);
          }
        } else if (request->charged[key] > 0 && !request->is_unknown[key]) {
          EXPECT_EQ(request->given_back[key], 1) << key;
        }
        if (request->check.failure == Failure::none) {
          EXPECT_FALSE(request->is_unknown[key]);
        }
      }
    }
    for (const auto& [key, tokens] : taken) EXPECT_EQ(tokens, kept[key] + lost[key]) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyAnswers, ::testing::Range(1U, 9U));

}  // namespace
}  // namespace sluice::store::redis
