// Durations counted so finely that a quantile is right within 1 %.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace sluice::load {

/// Log-linear: 128 buckets for each power of two, so a bucket is at most 1/128 of its values wide, and values below 256
/// are exact. 59 kB. Not thread-safe.
class Histogram {
 public:
  /// Counts `value` (ns; below 0 counts as 0) `times` times. Cost: one addition in an array.
  void add(std::int64_t value, std::uint64_t times = 1);
  void add(const Histogram& other);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::int64_t min() const { return count_ == 0 ? 0 : min_; }
  [[nodiscard]] std::int64_t max() const { return max_; }
  [[nodiscard]] double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  /// The least value that at least `share` (0 … 1) of all do not exceed, at most 1/128 too great; 0 when there are
  /// none.
  [[nodiscard]] std::int64_t quantile(double share) const;

 private:
  static constexpr unsigned kBits = 7;
  static constexpr std::size_t kBuckets = (64U - kBits) << kBits;

  [[nodiscard]] static std::size_t bucket_of(std::uint64_t value) {
    const auto width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > kBits + 1 ? width - kBits - 1 : 0;
    return (std::size_t{shift} << kBits) + static_cast<std::size_t>(value >> shift);
  }
  [[nodiscard]] static std::uint64_t last_of(std::size_t bucket);

  std::vector<std::uint64_t> buckets_ = std::vector<std::uint64_t>(kBuckets);
  std::uint64_t count_ = 0;
  std::int64_t min_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace sluice::load
