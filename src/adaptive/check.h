// Gathers what is out of range in a set of numbers.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithm/limit_check.h"

namespace sluice::adaptive {

class Check {
 public:
  explicit Check(std::vector<algorithm::LimitProblem> found = {}) : problems_(std::move(found)) {}

  void range(std::string_view field, std::uint64_t low, std::uint64_t high, std::uint64_t found);
  void add(std::string_view field, std::string message) { problems_.push_back({field, std::move(message)}); }
  /// At least 1 µs, in whole µs.
  void duration(std::string_view field, std::chrono::nanoseconds longest, std::string_view longest_text,
                std::chrono::nanoseconds found);
  /// Throws std::invalid_argument that names each field out of range, if there are any.
  void finish() const;

 private:
  std::vector<algorithm::LimitProblem> problems_;
};

}  // namespace sluice::adaptive
