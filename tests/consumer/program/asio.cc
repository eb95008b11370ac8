// Waits at a limiter without a thread: what only programs need that ask for the component asio.
#include <sluice/asio/async_wait.h>
#include <sluice/token_bucket.h>

#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstdio>

int main() {
  using namespace std::chrono_literals;
  boost::asio::io_context io;
  sluice::TokenBucket bucket{{.rate = 1, .period = 10ms, .burst = 1}};
  sluice::AsyncWaits waits(io, bucket);
  int granted = 0;
  for (int i = 0; i < 3; ++i) {
    waits.async_wait([&granted](boost::system::error_code error, sluice::WaitResult result) {
      if (!error && result) ++granted;
    });
  }
  io.run();
  if (granted != 3) return 1;
  std::puts("all right");
}
