// Retry-After: whatever comes, what is asked for is neither below nothing nor above what is obeyed.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/support.h"
#include "http_client/retry_after.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace std::chrono_literals;
  const std::string_view field(reinterpret_cast<const char*>(data), size);
  using Days = std::chrono::sys_days;
  for (const std::chrono::system_clock::time_point now : {Days(1970y / 1 / 1) + 0ms, Days(2026y / 10 / 21) + 900ms}) {
    const std::chrono::seconds asked = sluice::http_client::read_retry_after(field, now, 1h);
    sluice::fuzz::require(asked >= 0s && asked <= 1h);
    // Later, less of it is left of a date, and as much of seconds.
    sluice::fuzz::require(sluice::http_client::read_retry_after(field, now + 10s, 1h) <= asked);
  }
  return 0;
}
