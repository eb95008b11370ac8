// The memory store against the plainest store there is: one std::map of states.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/calendar.h"
#include "algorithm/compiled_limit.h"
#include "store/memory/memory_store.h"
#include "tests/unit/store/store_test_util.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using algorithm::CompiledLimit;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Never forgets a key, knows nothing of shards.
class PlainStore {
 public:
  bool check(const std::vector<Charge>& charges, std::vector<Decision>& decisions, Time now) {
    struct One {
      CompiledLimit* limit;
      algorithm::Cell* state;
      std::int64_t instant;
      algorithm::Verdict verdict;
    };
    std::vector<One> all;
    bool refused = false;
    int quotas = 0;
    int quotas_over = 0;
    for (const Charge& charge : charges) {
      Entry& entry = entries_[{charge.limit->id, std::string(charge.key)}];
      CompiledLimit compiled =
          *CompiledLimit::compile(charge.limit->numbers, algorithm::Tick::nanosecond, &algorithm::open_calendar);
      const std::int64_t instant = compiled.instant(now);
      if (entry.numbers.empty()) {
        entry.numbers.push_back({charge.limit->numbers, compiled});
      } else if (entry.numbers.back().first != charge.limit->numbers) {
        compiled.convert(entry.state, entry.numbers.back().second, instant);
        entry.numbers.back() = {charge.limit->numbers, compiled};
      }
      CompiledLimit& mine = entry.numbers.back().second;
      all.push_back({&mine, &entry.state, instant, mine.judge(entry.state, instant, charge.cost)});
      const bool fits = all.back().verdict.fits;
      if (charge.enforcement == Enforcement::enforce && !fits) refused = true;
      if (charge.enforcement == Enforcement::quota) ++quotas;
      if (charge.enforcement == Enforcement::quota && !fits) ++quotas_over;
    }
    const bool admitted = !refused && (quotas == 0 || quotas_over < quotas);
    decisions.clear();
    for (std::size_t i = 0; i < all.size(); ++i) {
      One& one = all[i];
      if (!one.verdict.fits) {
        one.limit->count_denied(*one.state, one.instant, charges[i].cost);
      } else if (admitted) {
        one.limit->take(*one.state, one.instant, charges[i].cost);
      } else {
        one.verdict.mark = Mark::none;
        one.verdict.delay = 0;
      }
      decisions.push_back(one.limit->decision(one.verdict, one.limit->view(*one.state, one.instant)));
    }
    return admitted;
  }

 private:
  struct Entry {
    Entry() = default;
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() {
      if (!numbers.empty()) numbers.back().second.clear(state);
    }
    algorithm::Cell state;
    std::vector<std::pair<Limit, CompiledLimit>> numbers;  // none or one
  };
  std::map<std::pair<std::uint32_t, std::string>, Entry> entries_;
};

void expect_equal(const Decision& got, const Decision& want, const std::string& where) {
  EXPECT_EQ(got.allowed, want.allowed) << where;
  EXPECT_EQ(got.mark, want.mark) << where;
  EXPECT_EQ(got.source, Source::memory) << where;
  EXPECT_EQ(got.limit, want.limit) << where;
  EXPECT_EQ(got.remaining, want.remaining) << where;
  EXPECT_EQ(got.retry_after, want.retry_after) << where;
  EXPECT_EQ(got.reset_after, want.reset_after) << where;
  EXPECT_EQ(got.delay, want.delay) << where;
}

std::vector<CountedLimit> all_kinds(const std::string& prefix) {
  std::vector<CountedLimit> limits;
  limits.push_back(counted(prefix + ".token", token_bucket(3, seconds(1), 5)));
  limits.push_back(counted(prefix + ".leaky", leaky_bucket(10, seconds(1), 4)));
  limits.push_back(counted(prefix + ".epoch", fixed_window(4, seconds(2))));
  limits.push_back(counted(prefix + ".first_hit", fixed_window(4, seconds(1), Align::first_hit)));
  Limit denied = fixed_window(3, seconds(5));
  denied.count_denied = true;
  limits.push_back(counted(prefix + ".denied", denied));
  Limit month = fixed_window(20, seconds(1), Align::calendar);
  month.calendar = {.unit = Calendar::Unit::day, .timezone = "Europe/Berlin"};
  limits.push_back(counted(prefix + ".day", month));
  Limit log;
  log.algorithm = Algorithm::sliding_log;
  log.rate = 4;
  log.period = seconds(2);
  limits.push_back(counted(prefix + ".log", log));
  Limit slotted;
  slotted.algorithm = Algorithm::sliding_window;
  slotted.rate = 5;
  slotted.period = seconds(1);
  slotted.slots = 10;
  limits.push_back(counted(prefix + ".slotted", slotted));
  Limit sliding = slotted;
  sliding.slots = 1;
  limits.push_back(counted(prefix + ".sliding", sliding));
  limits.push_back(counted(prefix + ".spent", token_bucket(0, seconds(1), 50)));
  return limits;
}

class MemoryStoreTrace : public ::testing::TestWithParam<int> {};

TEST_P(MemoryStoreTrace, AnswersAsAPlainMap) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  std::mt19937_64 random(seed);
  const auto below = [&random](std::uint64_t n) { return random() % n; };

  std::vector<CountedLimit> limits = all_kinds("trace" + std::to_string(seed));
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.push_back("key" + std::to_string(i));
  keys.push_back("");
  keys.emplace_back(1, '\0');
  keys.emplace_back("key1\0", 5);
  keys.emplace_back(19, 'x');
  keys.emplace_back(20, 'x');
  keys.emplace_back(21, 'x');
  keys.emplace_back(200, '\xFF');
  keys.emplace_back(64 * 1024, 'x');

  MemoryStore store(100'000);
  PlainStore plain;
  AtOnce check;
  std::vector<Decision> want;
  std::int64_t now = kStart;
  for (int call = 0; call < 15'000; ++call) {
    if (below(400) == 0) {  // a reload: new numbers, same identity
      CountedLimit& changed = limits[below(limits.size())];
      CountedLimit next = changed;
      next.numbers.rate = next.numbers.rate == 0 ? 0 : 1 + below(8);
      if (below(2) == 0) next.numbers.burst = 1 + below(9);
      if (below(4) == 0) next.numbers.period = milliseconds(500 + 500 * below(4));
      changed = next;
    }
    switch (below(6)) {
      case 0:
        now += static_cast<std::int64_t>(below(3 * kSecond));
        break;
      case 1:
        now += static_cast<std::int64_t>(below(1'000));
        break;
      case 2:
        now += below(200) == 0 ? 86'400 * kSecond : 0;
        break;
      default:
        break;
    }
    std::vector<Charge> charges;
    std::vector<std::pair<std::size_t, std::size_t>> used;
    const std::uint64_t count = below(3) == 0 ? 1 + below(8) : 1;
    const std::uint64_t spread = below(2) == 0 ? 5 : keys.size();
    while (charges.size() < count) {
      const std::pair<std::size_t, std::size_t> pick{below(limits.size()), keys.size() - 1 - below(spread)};
      if (std::ranges::find(used, pick) != used.end()) continue;
      used.push_back(pick);
      const std::uint64_t cost = below(10) == 0 ? below(2) * kMaxTokens : below(3);
      const auto enforcement = below(4) == 0 ? static_cast<Enforcement>(below(3)) : Enforcement::enforce;
      charges.push_back({&limits[pick.first], keys[pick.second], cost, enforcement});
    }
    const bool admitted = plain.check(charges, want, at(now));
    const std::vector<Decision>& got = check.ask(store, charges, at(now));
    ASSERT_TRUE(check.answered);
    ASSERT_EQ(check.admitted, admitted) << "call " << call;
    for (std::size_t i = 0; i < charges.size(); ++i) {
      expect_equal(got[i], want[i], "call " + std::to_string(call) + " charge " + std::to_string(i));
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(store.figures().expired, 0U);
  EXPECT_EQ(store.figures().evicted, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, MemoryStoreTrace, ::testing::Range(1, 4));

}  // namespace
}  // namespace sluice::store
