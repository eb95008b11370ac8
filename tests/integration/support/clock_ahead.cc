// Loaded into a server before its own libraries: its wall clock is SLUICE_CLOCK_AHEAD_MS ahead of the machine's.
// Only system calls in here: an allocator may ask for the time before the libraries are ready.
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>  // NOLINT(modernize-deprecated-headers): clock_gettime is of POSIX
#include <unistd.h>

#include <cstdlib>

namespace {

constexpr long kMillisecond = 1'000'000;  // ns

// Read at each call, as nothing may be kept before main.
long ahead_ms() {
  const char* given = std::getenv("SLUICE_CLOCK_AHEAD_MS");
  return given != nullptr ? std::atol(given) : 0;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* out) noexcept {
  const long result = ::syscall(SYS_clock_gettime, clock, out);
  if (result != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return static_cast<int>(result);
  const long ahead = ahead_ms();
  out->tv_sec += ahead / 1'000;
  out->tv_nsec += ahead % 1'000 * kMillisecond;
  if (out->tv_nsec >= 1'000 * kMillisecond) {
    ++out->tv_sec;
    out->tv_nsec -= 1'000 * kMillisecond;
  }
  return 0;
}

int gettimeofday(timeval* out, void* /*zone*/) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1'000;
  return result;
}

time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}
}
