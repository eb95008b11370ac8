// The counter of this machine's processor.
#ifdef __x86_64__

#include <cpuid.h>

#include <algorithm>
#include <cstdint>

#include "single/counter_clock_lines.h"

namespace sluice::internal {

bool MachineCounter::trusted() noexcept {
  constexpr unsigned kPowerLeaf = 0x80000007;
  constexpr unsigned kInvariant = 1U << 8U;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(kPowerLeaf, &a, &b, &c, &d) == 0 || (d & kInvariant) == 0) return false;
  // Some virtual machines do each read in software.
  constexpr int kReads = 16;
  constexpr std::int64_t kSlow = 50;  // ns a read
  std::int64_t fastest = INT64_MAX;
  for (int round = 0; round < 3; ++round) {
    const std::int64_t begin = steady();
    for (int i = 0; i < kReads; ++i) static_cast<void>(ticks());
    fastest = std::min(fastest, steady() - begin);
  }
  return fastest < kReads * kSlow;
}

template class CounterClock<MachineCounter>;
constinit CounterClock<MachineCounter> machine_clock;

}  // namespace sluice::internal

#endif
