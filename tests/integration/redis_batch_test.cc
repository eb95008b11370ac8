// Many requests in one call of the script, in both of its styles, against the algorithms in C++ that judge the same
// requests one by one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "store/admission.h"
#include "store/redis/check_call.h"
#include "store/redis/resp_writer.h"
#include "store/redis/script.h"
#include "tests/integration/redis_engine.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/store_asker.h"
#include "tests/model/subject.h"

namespace sluice::testing {
namespace {

using store::Charge;
using store::CountedLimit;
using store::Enforcement;
using store::Failure;
using store::redis::Batch;
using store::redis::RedisLimit;
using store::redis::ScriptStyle;
using namespace std::chrono_literals;

constexpr int kBatches = 4'000;
constexpr std::int64_t kTrustedLead = std::int64_t{1} << 53;

struct Key {
  std::size_t limit;
  std::string name;
  auto operator<=>(const Key&) const = default;
};

class RedisBatch : public ::testing::Test {
 protected:
  RedisBatch() {
    const char* given = std::getenv("SLUICE_SEED");
    random_.seed(given != nullptr ? std::strtoull(given, nullptr, 10) : 1);
    for (const ScriptStyle style : {ScriptStyle::fast, ScriptStyle::literal}) {
      scripts_.push_back(store::redis::make_check_script(kTracedClock, style));
      server_.command({"SCRIPT", "LOAD", scripts_.back().text});
    }
    add({.algorithm = Algorithm::token_bucket, .rate = 10, .burst = 30});
    add({.algorithm = Algorithm::token_bucket, .rate = 7, .period = 60s, .burst = 7});
    add({.algorithm = Algorithm::leaky_bucket, .rate = 10, .queue = 5});
    add({.algorithm = Algorithm::fixed_window, .rate = 20, .period = 2s});
    add({.algorithm = Algorithm::fixed_window, .rate = 3, .align = Align::first_hit, .count_denied = true});
    add({.algorithm = Algorithm::sliding_window, .rate = 20, .period = 1s});
    add({.algorithm = Algorithm::sliding_window, .rate = 100, .period = 1s, .slots = 10});
    add({.algorithm = Algorithm::sliding_log, .rate = 20, .period = 1s});
    add({.algorithm = Algorithm::sliding_log, .rate = 200, .period = 10s});
    add({.algorithm = Algorithm::concurrency, .rate = 20, .ttl = 1s});
  }

  void add(const Limit& numbers) {
    limits_.push_back(std::make_unique<CountedLimit>());
    limits_.back()->numbers = numbers;
    limits_.back()->identity = "test/" + std::to_string(limits_.size());
    compiled_.push_back(*RedisLimit::compile(numbers));
  }
  std::size_t pick(std::size_t below) { return static_cast<std::size_t>(random_() % below); }

  struct Asked {
    std::vector<Key> keys;
    std::vector<Charge> charges;
  };
  Asked random_request() {
    Asked asked;
    std::set<Key> seen;
    for (std::size_t n = pick(3) == 0 ? 1 + pick(4) : 1; n > 0; --n) {
      Key key{pick(limits_.size()), "k" + std::to_string(pick(3))};
      if (!seen.insert(key).second) continue;
      asked.keys.push_back(std::move(key));
    }
    for (const Key& key : asked.keys) {
      constexpr std::uint64_t costs[] = {1, 1, 1, 1, 2, 5, 0, 19, 300};
      asked.charges.push_back({.limit = limits_[key.limit].get(),
                               .key = key.name,
                               .cost = costs[pick(std::size(costs))],
                               .enforcement = pick(5) == 0 ? static_cast<Enforcement>(pick(3)) : Enforcement::enforce});
    }
    return asked;
  }

  // One charge of one cost each, on as many keys of one bucket: what the script has a short way for.
  std::vector<Asked> each_once() {
    constexpr std::uint64_t costs[] = {1, 1, 2, 7, 30, 254};
    const std::uint64_t cost = costs[pick(std::size(costs))];
    const std::size_t limit = pick(2);
    std::vector<Asked> requests(pick(2) == 0 ? 1 : 1 + pick(6));
    const std::size_t first = pick(3);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].keys.push_back({limit, "k" + std::to_string(first + i)});
      requests[i].charges.push_back({.limit = limits_[limit].get(), .key = requests[i].keys[0].name, .cost = cost});
    }
    return requests;
  }

  model::Subject& subject(const Key& key) {
    auto& one = subjects_[key];
    if (one == nullptr) one = model::make_subject(limits_[key.limit]->numbers, algorithm::Tick::microsecond);
    return *one;
  }

  // By the script of that style, whose keys have a prefix of their own.
  void ask(std::size_t style, std::vector<std::unique_ptr<HeldCheck>>& checks, std::int64_t now) {
    Batch batch;
    for (const auto& check : checks) {
      std::vector<std::shared_ptr<const RedisLimit>> limits;
      for (const Charge& charge : check->charges) {
        for (std::size_t i = 0; i < limits_.size(); ++i) {
          if (limits_[i].get() == charge.limit) limits.push_back(compiled_[i]);
        }
      }
      ASSERT_TRUE(batch.add(*check, limits, std::string_view(prefixes_[style]), Time{}, 0));
    }
    batch.prepare();
    std::string command;
    store::redis::append_command(command, 2 + store::redis::words_of_call(batch) + 1);
    store::redis::append_bulk(command, "EVALSHA");
    store::redis::append_bulk(command, scripts_[style].sha1);
    store::redis::append_call(command, batch);
    store::redis::append_bulk(command, std::to_string(now));
    const auto reply = server_.raw_command(command);
    ASSERT_EQ(store::redis::AnswerReader(kTrustedLead).read(*reply, batch), Failure::none)
        << (reply->type == REDIS_REPLY_ERROR ? store::redis::text_of(*reply) : "");
  }

  RedisServer server_;
  std::vector<store::redis::Script> scripts_;
  const std::vector<std::string> prefixes_{"sluice0:", "sluice1:"};
  std::vector<std::unique_ptr<CountedLimit>> limits_;
  std::vector<std::shared_ptr<const RedisLimit>> compiled_;
  std::map<Key, std::unique_ptr<model::Subject>> subjects_;
  std::mt19937_64 random_;
};

Wait told(std::int64_t ticks) {
  return ticks == algorithm::kNever ? Wait::never() : Wait(std::chrono::microseconds(ticks));
}

TEST_F(RedisBatch, SameAnswersAsOneByOneInProcess) {
  std::int64_t now = 1'767'225'600'000'000;
  std::size_t admitted = 0;
  std::size_t denied = 0;
  for (int i = 0; i < kBatches; ++i) {
    constexpr std::int64_t steps[] = {0, 1, 50, 7'000, 100'000, 100'000, 333'333, 1'000'000, 11'000'000};
    now += steps[pick(std::size(steps))];
    std::vector<Asked> requests(1 + pick(pick(2) == 0 ? 4 : 30));
    for (Asked& one : requests) one = random_request();
    if (pick(3) == 0) requests = each_once();
    std::vector<std::vector<std::unique_ptr<HeldCheck>>> checks(scripts_.size());
    for (std::size_t style = 0; style < scripts_.size(); ++style) {
      for (const Asked& one : requests) checks[style].push_back(std::make_unique<HeldCheck>(one.charges));
      ask(style, checks[style], now);
      if (HasFatalFailure()) return;
    }
    for (std::size_t r = 0; r < requests.size(); ++r) {
      const Asked& one = requests[r];
      store::Admission admission;
      std::vector<algorithm::Verdict> verdicts;
      for (std::size_t c = 0; c < one.keys.size(); ++c) {
        verdicts.push_back(subject(one.keys[c]).judge(now, one.charges[c].cost));
        admission.add(one.charges[c].enforcement, verdicts[c].fits);
      }
      for (std::size_t c = 0; c < one.keys.size(); ++c) {
        if (!verdicts[c].fits) {
          subject(one.keys[c]).count_denied(now, one.charges[c].cost);
        } else if (admission.admitted()) {
          subject(one.keys[c]).take(now, one.charges[c].cost);
        } else {
          verdicts[c].forget_turn();
        }
      }
      ++(admission.admitted() ? admitted : denied);
      for (const auto& answered : checks) {
        ASSERT_EQ(answered[r]->admitted, admission.admitted()) << "batch " << i << " request " << r;
        for (std::size_t c = 0; c < one.keys.size(); ++c) {
          const auto view = subject(one.keys[c]).view(now);
          const Decision& got = answered[r]->decisions[c];
          SCOPED_TRACE("batch " + std::to_string(i) + " request " + std::to_string(r) + " limit " +
                       limits_[one.keys[c].limit]->identity);
          ASSERT_EQ(got.allowed, verdicts[c].fits);
          ASSERT_EQ(got.mark, verdicts[c].mark);
          ASSERT_EQ(got.retry_after, told(verdicts[c].retry_after));
          ASSERT_EQ(got.delay, told(verdicts[c].delay));
          ASSERT_EQ(got.remaining, view.remaining);
          ASSERT_EQ(got.reset_after, told(view.reset_after));
        }
      }
    }
  }
  EXPECT_GT(admitted, denied / 10);
  EXPECT_GT(denied, admitted / 10);
}

// A key that cannot be used fails the requests that charge it, and no others.
TEST_F(RedisBatch, AForeignValueFailsOnlyWhoAsksForIt) {
  const std::vector<std::vector<std::string>> foreign = {
      {"SET", "?", "hello"},
      {"RPUSH", "?", "x"},
      {"HSET", "?", "a", "b"},
      {"ZADD", "?", "1", "x"},
      {"SET", "?", ""},
      {"ZADD", "?", "-1", "x"},
      {"SET", "?", std::string(47, 'x')},
      {"SADD", "?", "x"},
      {"SET", "?", std::string(31, 'x')},
      {"SET", "?", std::string(38, '\x01')},
  };
  for (std::size_t limit = 0; limit < limits_.size(); ++limit) {
    for (const auto& words : foreign) {
      for (std::size_t style = 0; style < scripts_.size(); ++style) {
        server_.command({"FLUSHALL"});
        const std::string name = "sluice" + std::to_string(style) + ":{bad}" + limits_[limit]->identity;
        std::vector<std::string> command = words;
        command[1] = name;
        ASSERT_NE(server_.command(command)->type, REDIS_REPLY_ERROR);
        const auto before = server_.command({"DUMP", name});
        std::vector<std::unique_ptr<HeldCheck>> checks;
        // One that is sound before, one that names the bad key between two sound ones, one after.
        const Charge sound{.limit = limits_[0].get(), .key = "a"};
        const Charge bad{.limit = limits_[limit].get(), .key = "bad"};
        const Charge other{.limit = limits_[5].get(), .key = "b"};
        checks.push_back(std::make_unique<HeldCheck>(std::vector{sound}));
        checks.push_back(std::make_unique<HeldCheck>(std::vector{sound, bad, other}));
        checks.push_back(std::make_unique<HeldCheck>(std::vector{bad}));
        checks.push_back(std::make_unique<HeldCheck>(std::vector{other}));
        Batch batch;
        for (const auto& check : checks) {
          std::vector<std::shared_ptr<const RedisLimit>> compiled;
          for (const Charge& charge : check->charges) {
            compiled.push_back(charge.limit == sound.limit   ? compiled_[0]
                               : charge.limit == other.limit ? compiled_[5]
                                                             : compiled_[limit]);
          }
          ASSERT_TRUE(batch.add(*check, compiled, std::string_view(prefixes_[style]), Time{}, 0));
        }
        batch.prepare();
        std::string text;
        store::redis::append_command(text, 2 + store::redis::words_of_call(batch) + 1);
        store::redis::append_bulk(text, "EVALSHA");
        store::redis::append_bulk(text, scripts_[style].sha1);
        store::redis::append_call(text, batch);
        store::redis::append_bulk(text, "1767225600000000");
        const auto reply = server_.raw_command(text);
        std::string told_key;
        ASSERT_EQ(store::redis::AnswerReader(kTrustedLead)
                      .read(*reply, batch, [&](Failure, std::string_view told) { told_key = told; }),
                  Failure::none)
            << limits_[limit]->identity << ' ' << words[0]
            << (reply->type == REDIS_REPLY_ERROR ? store::redis::text_of(*reply) : "");
        EXPECT_NE(told_key.find(name), std::string::npos) << told_key;
        const auto requests = batch.requests();
        EXPECT_EQ(requests[0].failure, Failure::none);
        EXPECT_TRUE(requests[1].failure == Failure::foreign_value || requests[1].failure == Failure::wrong_type);
        EXPECT_EQ(requests[2].failure, requests[1].failure);
        EXPECT_EQ(requests[3].failure, Failure::none);
        EXPECT_EQ(checks[0]->decisions[0].remaining, 29U);
        EXPECT_EQ(checks[3]->decisions[0].remaining, 19U);
        const auto after = server_.command({"DUMP", name});
        EXPECT_EQ(store::redis::text_of(*after), store::redis::text_of(*before));
      }
    }
  }
}

// The same in the short form of a call.
TEST_F(RedisBatch, AForeignValueAmongKeysOfOneLimit) {
  for (const std::string& value :
       std::vector{std::string("hello"), std::string(47, 'x'), std::string("\x01t") + std::string(45, 'x')}) {
    for (std::size_t style = 0; style < scripts_.size(); ++style) {
      server_.command({"FLUSHALL"});
      const std::string name = "sluice" + std::to_string(style) + ":{b}" + limits_[0]->identity;
      server_.command({"SET", name, value});
      std::vector<std::unique_ptr<HeldCheck>> checks;
      for (const char* key : {"a", "b", "c"}) {
        checks.push_back(std::make_unique<HeldCheck>(std::vector{Charge{.limit = limits_[0].get(), .key = key}}));
      }
      ask(style, checks, 1'767'225'600'000'000);
      EXPECT_EQ(checks[0]->decisions[0].remaining, 29U);
      EXPECT_FALSE(checks[1]->admitted);
      EXPECT_EQ(checks[2]->decisions[0].remaining, 29U);
      EXPECT_EQ(store::redis::text_of(*server_.command({"GET", name})), value);
    }
  }
}

}  // namespace
}  // namespace sluice::testing
