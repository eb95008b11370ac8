// Asynchronous waits by a simulated clock: io_context::poll runs what has become ready, nothing sleeps to be right.
#include "sluice/asio/async_wait.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <future>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/keyed.h"
#include "sluice/leaky_bucket.h"
#include "sluice/testing/simulated_clock.h"
#include "sluice/token_bucket.h"

namespace {

// So many allocations of this thread succeed, and then one fails; negative: all succeed.
thread_local long allocations_left =
    -1;  // NOLINT(google-runtime-int, cppcoreguidelines-avoid-non-const-global-variables)

void* allocate(std::size_t size, std::size_t alignment) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  void* const memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) { return allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}

namespace sluice {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;

struct Call {
  error_code error;
  WaitResult result;
};

class AsyncWaitTest : public ::testing::Test {
 protected:
  auto note() {
    return [this](error_code error, const WaitResult& result) { calls_.push_back({error, result}); };
  }
  // The bucket is empty.
  TokenBucket& empty(TokenBucket& bucket) {
    bucket.acquire_up_to(UINT64_MAX);
    return bucket;
  }

  SimulatedClock clock_;
  std::int64_t start_ = clock_.now().steady;
  asio::io_context io_;
  std::vector<Call> calls_;
};

TEST_F(AsyncWaitTest, CallsBackWhatIsThereAtOnceButNeverBeforeItReturns) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 2}, &clock_);
  AsyncWaits waits(io_, bucket);
  waits.async_wait(note());
  EXPECT_TRUE(calls_.empty());
  io_.poll();
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_FALSE(calls_[0].error);
  EXPECT_TRUE(calls_[0].result);
  EXPECT_EQ(calls_[0].result.decision.remaining, 1U);
}

TEST_F(AsyncWaitTest, ServesFirstComeFirst) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 2}, &clock_);
  AsyncWaits waits(io_, empty(bucket));
  for (int i = 0; i < 5; ++i) waits.async_wait(note());
  EXPECT_EQ(waits.size(), 5U);
  io_.poll();
  EXPECT_TRUE(calls_.empty());
  clock_.advance(100ms);
  io_.poll();
  EXPECT_EQ(calls_.size(), 1U);
  clock_.advance(400ms);
  io_.poll();
  ASSERT_EQ(calls_.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(calls_[i].result.ready_at, start_ + static_cast<std::int64_t>(i + 1) * 100'000'000);
  }
  EXPECT_EQ(waits.size(), 0U);
}

TEST_F(AsyncWaitTest, RefusesWithAnOutcomeOfItsOwn) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 2}, &clock_);
  AsyncWaits waits(io_, empty(bucket), 1);
  waits.async_wait(note());
  waits.async_wait(note());
  io_.poll();
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_FALSE(calls_[0].error);
  EXPECT_EQ(calls_[0].result.outcome, WaitOutcome::full);
  EXPECT_FALSE(calls_[0].result.decision.allowed);
  EXPECT_EQ(calls_[0].result.decision.retry_after, Wait(200ms));
  waits.cancel();
  waits.async_wait(3, note());
  waits.async_wait(1, 99ms, note());
  io_.restart();
  io_.poll();
  ASSERT_EQ(calls_.size(), 4U);
  EXPECT_EQ(calls_[2].result.outcome, WaitOutcome::never);
  EXPECT_EQ(calls_[3].result.outcome, WaitOutcome::deadline);
}

TEST_F(AsyncWaitTest, ACancellationSlotGivesBackAndLetsThoseBehindMoveUp) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 2}, &clock_);
  AsyncWaits waits(io_, empty(bucket));
  asio::cancellation_signal signal;
  waits.async_wait(2, asio::bind_cancellation_slot(signal.slot(), note()));
  waits.async_wait(note());
  signal.emit(asio::cancellation_type::total);
  io_.poll();
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_EQ(calls_[0].error, asio::error::operation_aborted);
  EXPECT_EQ(calls_[0].result.outcome, WaitOutcome::stopped);
  clock_.advance(100ms);
  io_.poll();
  ASSERT_EQ(calls_.size(), 2U);
  EXPECT_TRUE(calls_[1].result);
  EXPECT_EQ(bucket.peek(0).reset_after, Wait(200ms));
  signal.emit(asio::cancellation_type::total);  // nobody listens any more
}

TEST_F(AsyncWaitTest, CancellationOfWhatIsOverButNotYetCalledChangesNothing) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 2}, &clock_);
  AsyncWaits waits(io_, empty(bucket));
  asio::cancellation_signal signal;
  waits.async_wait(asio::bind_cancellation_slot(signal.slot(), note()));
  clock_.advance(100ms);
  signal.emit(asio::cancellation_type::terminal);
  io_.poll();
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_TRUE(calls_[0].result);
}

TEST_F(AsyncWaitTest, DestructionCompletesThoseWhoWait) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 2}, &clock_);
  {
    AsyncWaits waits(io_, empty(bucket));
    waits.async_wait(note());
    waits.async_wait(2, note());
  }
  EXPECT_EQ(bucket.peek(0).reset_after, Wait(200ms));
  io_.poll();
  ASSERT_EQ(calls_.size(), 2U);
  EXPECT_EQ(calls_[0].error, asio::error::operation_aborted);
  EXPECT_EQ(calls_[1].error, asio::error::operation_aborted);
}

TEST_F(AsyncWaitTest, AnExecutionContextMayEndWithHandlersThatWereNeverCalled) {
  auto alive = std::make_shared<int>(0);
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 2}, &clock_);
  {
    asio::io_context io;
    AsyncWaits waits(io, empty(bucket));
    for (int i = 0; i < 3; ++i) waits.async_wait([alive](error_code, const WaitResult&) { ++*alive; });
    clock_.advance(100ms);
  }
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_EQ(*alive, 0);
}

TEST_F(AsyncWaitTest, ACancellationSignalMayOutliveTheExecutionContext) {
  asio::cancellation_signal signal;
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 2}, &clock_);
  {
    asio::io_context io;
    AsyncWaits waits(io, empty(bucket));
    waits.async_wait(asio::bind_cancellation_slot(signal.slot(), note()));
  }
  signal.emit(asio::cancellation_type::terminal);
  EXPECT_TRUE(calls_.empty());
  EXPECT_EQ(bucket.peek(0).reset_after, Wait(200ms));
}

TEST_F(AsyncWaitTest, ACancellationSignalMayEndBeforeTheExecutionContext) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 2}, &clock_);
  asio::io_context io;
  asio::cancellation_signal signal;
  AsyncWaits waits(io, empty(bucket));
  waits.async_wait(asio::bind_cancellation_slot(signal.slot(), note()));
  clock_.advance(100ms);
  EXPECT_EQ(waits.size(), 0U);
}

TEST_F(AsyncWaitTest, ACancellationSlotMayBeEmittedWhenItsHandlerWasThrownAway) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 2}, &clock_);
  AsyncWaits waits(io_, empty(bucket));
  asio::cancellation_signal signal;
  std::optional<asio::io_context> own(std::in_place);
  waits.async_wait(asio::bind_executor(own->get_executor(), asio::bind_cancellation_slot(signal.slot(), note())));
  clock_.advance(100ms);
  io_.poll();
  own.reset();
  signal.emit(asio::cancellation_type::terminal);
  EXPECT_TRUE(calls_.empty());
  EXPECT_EQ(bucket.peek(0).reset_after, Wait(200ms));  // the token was taken, and isn't given back
}

// By the machine's clock, as there is a timer only then.
TEST_F(AsyncWaitTest, WithoutMemoryNothingIsTakenAndNobodyWaits) {
  bool waited = false;
  for (int left = 0; !waited; ++left) {
    SCOPED_TRACE(left);
    ASSERT_LT(left, 20);
    TokenBucket bucket({.rate = 1, .period = 1h, .burst = 2});
    asio::io_context io;
    AsyncWaits waits(io, empty(bucket), 1);
    asio::cancellation_signal signal;
    int called = 0;
    allocations_left = left;
    try {
      waits.async_wait(asio::bind_cancellation_slot(signal.slot(), [&](error_code, const WaitResult&) { ++called; }));
      waited = true;
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(waits.size(), 0U);
    }
    allocations_left = -1;
    if (waited) break;
    signal.emit(asio::cancellation_type::terminal);
    EXPECT_LE(bucket.peek(0).reset_after, Wait(2h));
    io.run();  // no work is left
    EXPECT_EQ(called, 0);
    io.restart();
    waits.async_wait([&](error_code, const WaitResult&) { ++called; });
    EXPECT_EQ(waits.size(), 1U);
    bucket.set_limit({.rate = 1'000, .period = 1s, .burst = 2});
    io.run();
    EXPECT_EQ(called, 1);
  }
}

TEST_F(AsyncWaitTest, ATimerThatCouldNotBeSetForLackOfMemoryIsSetWithTheNextChange) {
  TokenBucket bucket({.rate = 20, .period = 1s, .burst = 1});
  AsyncWaits first(io_, empty(bucket));
  AsyncWaits second(io_, bucket);
  first.async_wait(note());
  second.async_wait(note());
  allocations_left = 0;
  first.cancel();  // the second one's timer needs room among the context's
  const bool failed = allocations_left < 0;
  allocations_left = -1;
  EXPECT_TRUE(failed);
  second.async_wait(note());
  io_.run_for(10s);
  EXPECT_EQ(calls_.size(), 3U);
}

TEST_F(AsyncWaitTest, KeepsTheContextBusy) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 2}, &clock_);
  AsyncWaits waits(io_, empty(bucket));
  waits.async_wait(note());
  std::thread thread([&] { io_.run(); });
  clock_.advance(100ms);
  thread.join();
  EXPECT_EQ(calls_.size(), 1U);
}

TEST_F(AsyncWaitTest, TakesAnyCompletionToken) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 1}, &clock_);
  AsyncWaits waits(io_, bucket);
  std::future<WaitResult> future = waits.async_wait(asio::use_future);
  auto later = waits.async_wait(asio::deferred);
  io_.poll();
  EXPECT_TRUE(future.get());
  std::move(later)(note());
  io_.restart();
  io_.poll();
  EXPECT_TRUE(calls_.empty());
  clock_.advance(100ms);
  io_.poll();
  EXPECT_EQ(calls_.size(), 1U);
  std::future<WaitResult> cancelled = waits.async_wait(asio::use_future);
  waits.cancel();
  io_.restart();
  io_.poll();
  EXPECT_THROW(cancelled.get(), boost::system::system_error);
}

TEST_F(AsyncWaitTest, ADeferredWaitMayOutliveItsObject) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 1}, &clock_);
  std::optional<AsyncWaits> waits(std::in_place, io_, bucket);
  auto later = waits->async_wait(asio::deferred);
  waits.reset();
  std::move(later)(note());
  io_.poll();
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_EQ(calls_[0].error, asio::error::operation_aborted);
}

TEST_F(AsyncWaitTest, RunsOnTheHandlersExecutorWithItsAllocator) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 1}, &clock_);
  AsyncWaits waits(io_, empty(bucket));
  asio::io_context other;
  std::array<std::byte, 4096> buffer{};
  std::pmr::monotonic_buffer_resource memory(buffer.data(), buffer.size(), std::pmr::null_memory_resource());
  waits.async_wait(asio::bind_executor(
      other.get_executor(), asio::bind_allocator(std::pmr::polymorphic_allocator<std::byte>(&memory), note())));
  clock_.advance(100ms);
  io_.poll();
  EXPECT_TRUE(calls_.empty());
  other.poll();
  EXPECT_EQ(calls_.size(), 1U);
}

TEST_F(AsyncWaitTest, AHandlerThatThrowsLosesNobodyElse) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 1}, &clock_);
  AsyncWaits waits(io_, empty(bucket));
  waits.async_wait([](error_code, const WaitResult&) { throw std::runtime_error("thrown by a handler"); });
  waits.async_wait(note());
  clock_.advance(200ms);
  EXPECT_THROW(io_.poll(), std::runtime_error);
  io_.poll();
  EXPECT_EQ(calls_.size(), 1U);
}

TEST_F(AsyncWaitTest, AHandlerMayWaitAgainOrDestroyTheObject) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 1}, &clock_);
  auto waits = std::make_unique<AsyncWaits>(io_, empty(bucket));
  waits->async_wait([&](error_code, const WaitResult&) {
    waits->async_wait(note());
    waits->async_wait(note());
  });
  clock_.advance(100ms);
  io_.poll();
  clock_.advance(100ms);
  io_.poll();
  EXPECT_EQ(calls_.size(), 1U);
  waits->async_wait([&](error_code, const WaitResult&) { waits.reset(); });
  waits->async_wait(note());
  clock_.advance(200ms);
  io_.poll();
  ASSERT_EQ(calls_.size(), 3U);
  EXPECT_EQ(calls_[2].error, asio::error::operation_aborted);
}

TEST_F(AsyncWaitTest, ThreadsAndOthersStandInTheSameLine) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 1}, &clock_);
  AsyncWaits first(io_, empty(bucket));
  AsyncWaits second(io_, bucket);
  first.async_wait(note());
  std::optional<WaitResult> in_thread;
  std::jthread thread([&] { in_thread = bucket.wait(); });
  while (bucket.peek(0).reset_after < Wait(300ms)) std::this_thread::yield();
  second.async_wait(note());
  clock_.advance(300ms);
  thread.join();
  io_.poll();
  ASSERT_EQ(calls_.size(), 2U);
  EXPECT_EQ(calls_[0].result.ready_at, start_ + 100'000'000);
  EXPECT_EQ(in_thread->ready_at, start_ + 200'000'000);
  EXPECT_EQ(calls_[1].result.ready_at, start_ + 300'000'000);
}

TEST_F(AsyncWaitTest, ByTheMachinesClock) {
  TokenBucket bucket({.rate = 1'000, .period = 1s, .burst = 1});
  AsyncWaits waits(io_, empty(bucket));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) waits.async_wait(note());
  io_.run();
  EXPECT_EQ(calls_.size(), 20U);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 19ms);
}

TEST_F(AsyncWaitTest, ALimitRaisedWhileTheTimerRunsIsNotOverslept) {
  TokenBucket bucket({.rate = 1, .period = 1h, .burst = 1});
  AsyncWaits waits(io_, empty(bucket));
  waits.async_wait(note());
  waits.async_wait(note());
  std::thread thread([&] { io_.run(); });
  bucket.set_limit({.rate = 1'000, .period = 1s, .burst = 1});
  thread.join();
  EXPECT_EQ(calls_.size(), 2U);
}

TEST_F(AsyncWaitTest, AContextWithNobodyWaitingEnds) {
  TokenBucket bucket({.rate = 1, .period = 1h, .burst = 1});
  AsyncWaits waits(io_, empty(bucket));
  waits.async_wait(note());
  waits.async_wait(note());
  waits.cancel();
  io_.run();  // not for an hour
  EXPECT_EQ(calls_.size(), 2U);
}

TEST_F(AsyncWaitTest, ByKey) {
  Keyed<TokenBucket> limiter({.rate = 10, .period = 1s, .burst = 1}, {.max_keys = 1'000, .clock = &clock_});
  {
    KeyedAsyncWaits waits(io_, limiter, 1);
    waits.async_wait("a", note());
    waits.async_wait("b", note());
    io_.poll();
    EXPECT_EQ(calls_.size(), 2U);
    waits.async_wait("a", 1, 1s, note());
    waits.async_wait("b", note());
    waits.async_wait("b", note());  // one too many there
    io_.restart();
    io_.poll();
    ASSERT_EQ(calls_.size(), 3U);
    EXPECT_EQ(calls_[2].result.outcome, WaitOutcome::full);
    clock_.advance(100ms);
    io_.restart();
    io_.poll();
    EXPECT_EQ(calls_.size(), 5U);
    for (int i = 0; i < 200; ++i) waits.async_wait(std::to_string(i), 1, note());
    waits.async_wait("a", 1, note());
    waits.cancel();
    io_.restart();
    io_.poll();
    EXPECT_EQ(calls_.size(), 206U);
    EXPECT_EQ(calls_.back().error, asio::error::operation_aborted);
    waits.async_wait("a", 1, note());
  }
  io_.restart();
  io_.poll();
  ASSERT_EQ(calls_.size(), 207U);
  EXPECT_EQ(calls_.back().error, asio::error::operation_aborted);
  EXPECT_EQ(limiter.peek("a", 0).reset_after, Wait(100ms));
}

TEST_F(AsyncWaitTest, AHundredThousandWait) {
  constexpr int kWaiters = 100'000;
  LeakyBucket queue({.rate = 1'000'000, .period = 1s, .queue = kWaiters}, &clock_);
  AsyncWaits waits(io_, queue, kWaiters);
  int granted = 0;
  bool in_order = true;
  std::int64_t last = 0;
  for (int i = 0; i < kWaiters; ++i) {
    waits.async_wait([&](error_code, const WaitResult& result) {
      granted += result ? 1 : 0;
      in_order = in_order && result.ready_at > last;
      last = result.ready_at;
    });
  }
  for (int i = 0; i < 100; ++i) {
    clock_.advance(1ms);
    io_.poll();
  }
  EXPECT_EQ(granted, kWaiters);
  EXPECT_TRUE(in_order);
}

TEST_F(AsyncWaitTest, ManyThreadsRunTheContext) {
  constexpr int kWaits = 2'000;
  TokenBucket bucket({.rate = 200'000, .period = 1s, .burst = 50});
  asio::thread_pool pool(4);
  std::atomic<int> called{0};
  std::atomic<int> granted{0};
  {
    std::optional<AsyncWaits> waits(std::in_place, pool.get_executor(), bucket);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kWaits; ++i) {
          waits->async_wait(1 + static_cast<std::uint64_t>((i + t) % 3), Deadline(i % 5 == 0 ? 1ms : 10s),
                            [&](error_code, const WaitResult& result) {
                              ++called;
                              if (result) ++granted;
                            });
          if (i % 100 == 0) bucket.set_limit({.rate = 200'000U + static_cast<unsigned>(i), .period = 1s, .burst = 50});
          if (i % 301 == 0) waits->cancel();
        }
      });
    }
    threads.clear();
    waits.reset();  // while many still wait
  }
  pool.join();
  EXPECT_EQ(called, 3 * kWaits);
  EXPECT_GT(granted, 0);
}

}  // namespace
}  // namespace sluice
