#include "load/histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace sluice::load {
namespace {

TEST(Histogram, EachValueIsItsOwnQuantileWithinOnePercent) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = static_cast<std::int64_t>(random() >> (1 + random() % 63));
    Histogram histogram;
    histogram.add(value);
    histogram.add(
        std::numeric_limits<std::int64_t>::max());  // so that the bucket's end is told, not the greatest value
    const std::int64_t told = histogram.quantile(0.5);
    ASSERT_GE(told, value);
    ASSERT_LE(static_cast<double>(told - value), 0.01 * static_cast<double>(value));
  }
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (int value = 0; value < 256; ++value) histogram.add(value);
  EXPECT_EQ(histogram.quantile(0), 0);
  EXPECT_EQ(histogram.quantile(0.5), 127);
  EXPECT_EQ(histogram.quantile(1), 255);
  EXPECT_EQ(histogram.mean(), 127.5);
}

TEST(Histogram, QuantilesAreThoseOfTheSortedValues) {
  std::mt19937_64 random(11);
  std::lognormal_distribution<double> times(12, 2);
  std::vector<std::int64_t> values;
  Histogram one;
  Histogram other;
  for (int i = 0; i < 10'000; ++i) {
    values.push_back(static_cast<std::int64_t>(times(random)));
    (i % 3 == 0 ? one : other).add(values.back());
  }
  one.add(other);
  std::ranges::sort(values);
  ASSERT_EQ(one.count(), values.size());
  for (const double share : {0.0001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
    const auto place = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1;
    const auto exact = static_cast<double>(values[place]);
    EXPECT_GE(static_cast<double>(one.quantile(share)), exact) << share;
    EXPECT_LE(static_cast<double>(one.quantile(share)), exact * 1.01) << share;
  }
  EXPECT_EQ(one.max(), values.back());
  EXPECT_EQ(one.min(), values.front());
}

TEST(Histogram, EmptyAndNegative) {
  Histogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), 0);
  EXPECT_EQ(histogram.mean(), 0);
  histogram.add(-5, 3);
  EXPECT_EQ(histogram.count(), 3U);
  EXPECT_EQ(histogram.max(), 0);
}

}  // namespace
}  // namespace sluice::load
