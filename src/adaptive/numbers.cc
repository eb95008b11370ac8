#include "adaptive/numbers.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <variant>

#include "adaptive/check.h"

namespace sluice::adaptive {

namespace {

constexpr std::uint64_t kMostCalls = 1'000'000;

void check(const Aimd& aimd, Check& check) {
  check.duration("aimd.timeout", std::chrono::minutes(15), "15 min", aimd.timeout);
  check.range("aimd.increase", 1, 1'000, aimd.increase);
}

void check(const Gradient& gradient, Check& check) {
  check.range("gradient.tolerance_permille", 1'000, 10'000, gradient.tolerance_permille);
  check.range("gradient.smoothing_permille", 1, 1'000, gradient.smoothing_permille);
  check.range("gradient.queue", 0, 10'000, gradient.queue);
  check.range("gradient.probe_every", 1, 1'000'000, gradient.probe_every);
}

}  // namespace

std::uint64_t initial_limit(const AdaptiveConcurrency::Numbers& numbers) {
  constexpr std::uint64_t kUsual = 20;
  return numbers.initial != 0 ? numbers.initial : std::clamp(kUsual, numbers.min, numbers.max);
}

void require_valid(const AdaptiveConcurrency::Numbers& numbers) {
  Check all;
  all.range("min", 1, kMostCalls, numbers.min);
  all.range("max", 1, kMostCalls, numbers.max);
  if (numbers.min > numbers.max) {
    all.add("max",
            "must be at least min, which is " + std::to_string(numbers.min) + ", is " + std::to_string(numbers.max));
  } else if (numbers.initial != 0) {
    all.range("initial", numbers.min, numbers.max, numbers.initial);
  }
  all.duration("window", std::chrono::seconds(60), "60 s", numbers.window);
  all.range("samples", 1, 100'000, numbers.samples);
  all.range("tolerated_drops_permille", 0, 1'000, numbers.tolerated_drops_permille);
  all.range("backoff_permille", 1, 999, numbers.backoff_permille);
  std::visit([&](const auto& method) { check(method, all); }, numbers.method);
  all.finish();
}

}  // namespace sluice::adaptive
