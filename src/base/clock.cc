#include "sluice/clock.h"

#include <chrono>

namespace sluice {

Time SystemClock::now() const {
  const auto nanoseconds = [](auto instant) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(instant.time_since_epoch()).count();
  };
  return {nanoseconds(std::chrono::steady_clock::now()), nanoseconds(std::chrono::system_clock::now())};
}

}  // namespace sluice
