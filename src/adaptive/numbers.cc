#include "adaptive/numbers.h"

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "algorithm/limit_check.h"

namespace sluice::adaptive {

namespace {

constexpr std::uint64_t kMostCalls = 1'000'000;

class Check {
 public:
  void range(std::string_view field, std::uint64_t low, std::uint64_t high, std::uint64_t found) {
    if (found >= low && found <= high) return;
    problems_.push_back(
        {field, "must be " + std::to_string(low) + " … " + std::to_string(high) + ", is " + std::to_string(found)});
  }
  void duration(std::string_view field, std::chrono::nanoseconds longest, std::string_view longest_text,
                std::chrono::nanoseconds found) {
    if (found >= std::chrono::microseconds(1) && found <= longest && found.count() % 1'000 == 0) return;
    problems_.push_back({field, "must be 1 µs … " + std::string(longest_text) + " in whole µs, is " +
                                    std::to_string(found.count()) + " ns"});
  }
  void finish() const {
    if (!problems_.empty()) throw std::invalid_argument("sluice: " + algorithm::joined(problems_));
  }

 private:
  std::vector<algorithm::LimitProblem> problems_;
};

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

void require_valid(const AdaptiveConcurrency::Numbers& numbers) {
  Check all;
  all.range("min", 1, kMostCalls, numbers.min);
  all.range("max", numbers.min, kMostCalls, numbers.max);
  all.range("initial", numbers.min, numbers.max, numbers.initial);
  all.duration("window", std::chrono::seconds(60), "60 s", numbers.window);
  all.range("samples", 1, 100'000, numbers.samples);
  all.range("tolerated_drops_permille", 0, 1'000, numbers.tolerated_drops_permille);
  all.range("backoff_permille", 1, 999, numbers.backoff_permille);
  std::visit([&](const auto& method) { check(method, all); }, numbers.method);
  all.finish();
}

}  // namespace sluice::adaptive
