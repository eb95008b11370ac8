// What stores count by themselves: apart, so that they need not what a registry needs.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "metrics/metrics.h"

namespace sluice::metrics {

std::uint64_t Shard::bound(Histogram histogram, std::size_t bucket) {
  // 8 µs to 1 s; 1 to 131 072 requests.
  return std::uint64_t{histogram == Histogram::store_batch ? 1U : 8'000U} << bucket;
}

void Shard::observe(Histogram histogram, std::int64_t value, std::uint64_t weight) {
  HistogramCells& cells = histograms_[static_cast<std::size_t>(histogram)];
  const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
  std::size_t bucket = 0;
  while (bucket < kBuckets && size > bound(histogram, bucket)) ++bucket;
  bump(cells.counts[bucket], weight);
  bump(cells.sum, size * weight);
}

}  // namespace sluice::metrics
