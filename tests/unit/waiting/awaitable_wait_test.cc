// Waits in coroutines.
#include <gtest/gtest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "sluice/asio/async_wait.h"
#include "sluice/testing/simulated_clock.h"
#include "sluice/token_bucket.h"

namespace sluice {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> wait_twice(AsyncWaits& waits, int& granted) {
  for (int i = 0; i < 2; ++i) {
    const WaitResult result = co_await waits.async_wait(1, 1s, asio::use_awaitable);
    if (result) ++granted;
  }
}

TEST(AwaitableWaitTest, IsAwaited) {
  SimulatedClock clock;
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 1}, &clock);
  asio::io_context io;
  AsyncWaits waits(io, bucket);
  int granted = 0;
  asio::co_spawn(io, wait_twice(waits, granted), asio::detached);
  io.poll();
  EXPECT_EQ(granted, 1);
  clock.advance(100ms);
  io.poll();
  EXPECT_EQ(granted, 2);
}

}  // namespace
}  // namespace sluice
