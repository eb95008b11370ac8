// When Keyed allocates, and what happens when it cannot.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/keyed.h"
#include "tests/unit/keyed/keyed_test_util.h"

namespace {

std::atomic<std::uint64_t> allocations{0};
thread_local bool fails = false;

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = fails ? nullptr : std::malloc(size);  // NOLINT(cppcoreguidelines-no-malloc)
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}  // NOLINT(cppcoreguidelines-no-malloc)
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc)
}

namespace sluice {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using std::chrono::hours;

class Failing {
 public:
  Failing() { fails = true; }
  ~Failing() { fails = false; }
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;
};

template <typename Limiter>
std::uint64_t allocations_of(Limiter& limits) {
  const std::string text = "a key that is longer than any small string would be";
  const std::string_view view = text;
  std::array<char, 24> name{};
  const std::uint64_t before = allocations.load();
  for (int i = 0; i < 2'000; ++i) {
    const int length = std::snprintf(name.data(), name.size(), "user %d", i);
    limits.try_acquire(std::string_view(name.data(), static_cast<std::size_t>(length)), 1, at(kStart + i));
    limits.try_acquire(view, 1, at(kStart + i));
    static_cast<void>(limits.peek(view, 1, at(kStart + i)));
  }
  limits.reset(view, at(kStart));
  return allocations.load() - before;
}

TEST(KeyedAllocation, StatesOfFixedSizeNeverAllocate) {
  Keyed<TokenBucket> buckets({.rate = 10, .burst = 30});
  Keyed<LeakyBucket> queues({.rate = 10, .queue = 30});
  Keyed<FixedWindow> windows({.rate = 10});
  Keyed<FixedWindow> first_hit({.rate = 10, .period = hours(24), .align = Align::first_hit});
  Keyed<SlidingWindow> sliding({.rate = 10});
  EXPECT_EQ(allocations_of(buckets), 0U);
  EXPECT_EQ(allocations_of(queues), 0U);
  EXPECT_EQ(allocations_of(windows), 0U);
  EXPECT_EQ(allocations_of(first_hit), 0U);
  EXPECT_EQ(allocations_of(sliding), 0U);
}

TEST(KeyedAllocation, ALogWithoutMemoryTakesNothing) {
  Keyed<SlidingLog> limits({.rate = 100});
  EXPECT_TRUE(limits.try_acquire("k", 1, at(kStart)).allowed);
  const std::uint64_t bytes = limits.figures().bytes;
  {
    const Failing failing;
    EXPECT_THROW(limits.try_acquire("new", 1, at(kStart)), std::bad_alloc);
    EXPECT_THROW(limits.try_acquire("k", 1, at(kStart + 1)), std::bad_alloc);
    EXPECT_TRUE(limits.peek("k", 1, at(kStart)).allowed);
  }
  EXPECT_EQ(limits.peek("k", 0, at(kStart + 1)).remaining, 99U);
  EXPECT_EQ(limits.peek("new", 0, at(kStart)).remaining, 100U);
  EXPECT_EQ(limits.figures().keys, 1U);
  EXPECT_EQ(limits.figures().bytes, bytes);
  EXPECT_TRUE(limits.try_acquire("new", 1, at(kStart)).allowed);
}

TEST(KeyedAllocation, SlotsWithoutMemoryTakeNothing) {
  Keyed<SlidingWindow> limits({.rate = 100, .slots = 10});
  {
    const Failing failing;
    EXPECT_THROW(limits.try_acquire("k", 1, at(kStart)), std::bad_alloc);
    EXPECT_THROW(limits.penalize("k", 1, at(kStart)), std::bad_alloc);
  }
  EXPECT_EQ(limits.figures().keys, 0U);
}

TEST(KeyedAllocation, ALeaseWithoutMemoryIsNotHeldAndReleaseNeedsNone) {
  Keyed<Concurrency> limits({.rate = 1});
  {
    const Failing failing;
    EXPECT_THROW(static_cast<void>(limits.try_acquire("k", 1, at(kStart))), std::bad_alloc);
  }
  EXPECT_EQ(limits.figures().keys, 0U);
  auto lease = limits.try_acquire("k", 1, at(kStart));
  EXPECT_TRUE(lease);
  const Failing failing;
  EXPECT_TRUE(lease.release(at(kStart)));
}

TEST(KeyedAllocation, ADebtWithoutMemoryIsNotCharged) {
  Keyed<TokenBucket> limits({.rate = 1, .period = hours(24 * 365), .burst = 10});
  EXPECT_TRUE(limits.try_acquire("k", 1, at(kStart)).allowed);
  {
    const Failing failing;
    EXPECT_THROW(limits.settle("k", 0, kMaxTokens, at(kStart)), std::bad_alloc);
  }
  EXPECT_EQ(limits.peek("k", 0, at(kStart)).remaining, 9U);
}

TEST(KeyedAllocation, NewNumbersWithoutMemoryAreNotTaken) {
  Keyed<TokenBucket> limits({.rate = 1, .burst = 10});
  {
    const Failing failing;
    EXPECT_THROW(limits.set_limit({.rate = 1, .burst = 20}, at(kStart)), std::bad_alloc);
  }
  EXPECT_EQ(limits.peek("k", 0, at(kStart)).limit, 10U);
}

}  // namespace
}  // namespace sluice
