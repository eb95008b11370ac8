#include "load/histogram.h"

#include <cmath>

namespace sluice::load {

void Histogram::add(std::int64_t value, std::uint64_t times) {
  if (times == 0) return;
  value = std::max<std::int64_t>(value, 0);
  buckets_[bucket_of(static_cast<std::uint64_t>(value))] += times;
  count_ += times;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ += static_cast<double>(value) * static_cast<double>(times);
}

void Histogram::add(const Histogram& other) {
  for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

std::uint64_t Histogram::last_of(std::size_t bucket) {
  const std::size_t row = bucket >> kBits;
  const std::size_t shift = row == 0 ? 0 : row - 1;
  return ((bucket - (shift << kBits) + 1) << shift) - 1;
}

std::int64_t Histogram::quantile(double share) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(share * static_cast<double>(count_));
  const auto goal = std::clamp<std::uint64_t>(wanted < 1 ? 1 : static_cast<std::uint64_t>(wanted), 1, count_);
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    seen += buckets_[bucket];
    if (seen >= goal) return std::clamp(static_cast<std::int64_t>(last_of(bucket)), min_, max_);
  }
  return max_;
}

}  // namespace sluice::load
