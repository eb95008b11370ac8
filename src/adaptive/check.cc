#include "adaptive/check.h"

#include <stdexcept>
#include <string>

namespace sluice::adaptive {

void Check::range(std::string_view field, std::uint64_t low, std::uint64_t high, std::uint64_t found) {
  if (found >= low && found <= high) return;
  add(field, "must be " + std::to_string(low) + " … " + std::to_string(high) + ", is " + std::to_string(found));
}

void Check::duration(std::string_view field, std::chrono::nanoseconds longest, std::string_view longest_text,
                     std::chrono::nanoseconds found) {
  if (found >= std::chrono::microseconds(1) && found <= longest && found.count() % 1'000 == 0) return;
  add(field,
      "must be 1 µs … " + std::string(longest_text) + " in whole µs, is " + std::to_string(found.count()) + " ns");
}

void Check::finish() const {
  if (!problems_.empty()) throw std::invalid_argument("sluice: " + algorithm::joined(problems_));
}

}  // namespace sluice::adaptive
