// Keys of any type and any bytes.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/keyed.h"
#include "tests/unit/keyed/keyed_test_util.h"

namespace sluice {

/// A key of the user's own.
struct Address {
  std::array<char, 16> octets{};
  std::uint16_t port = 0;  // does not count
};
template <>
struct KeyBytes<Address> {
  static std::string_view of(const Address& key) { return {key.octets.data(), key.octets.size()}; }
};

/// One whose bytes have to be made.
struct Point {
  std::int32_t x = 0;
  std::int32_t y = 0;
};
template <>
struct KeyBytes<Point> {
  static std::array<char, 8> of(const Point& key) {
    std::array<char, 8> bytes{};
    std::memcpy(bytes.data(), &key.x, 4);
    std::memcpy(&bytes[4], &key.y, 4);
    return bytes;
  }
};

namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

template <typename Key>
void expect_distinct(const std::vector<Key>& keys) {
  Keyed<TokenBucket, Key> limits({.rate = 0, .burst = 1});
  for (const Key& key : keys) EXPECT_TRUE(limits.try_acquire(key, 1, at(kStart)).allowed);
  for (const Key& key : keys) EXPECT_FALSE(limits.try_acquire(key, 1, at(kStart)).allowed);
  EXPECT_EQ(limits.figures().keys, keys.size());
}

TEST(KeyedKeys, AnyBytesAndLengths) {
  std::vector<std::string> keys = {"",  {"\0", 1}, {"\0\0", 2}, {"a\0b", 3}, {"a\0", 2},
                                   "a", "a\r\nb",  "日本語",    "\xFF"};
  for (const std::size_t length : {2U, 10U, 11U, 12U, 13U, 16U, 17U, 128U, 129U, 240U, 241U, 4'096U, 65'536U}) {
    keys.emplace_back(length, 'x');
    keys.push_back(std::string(length - 1, 'x') + "y");
    keys.push_back("y" + std::string(length - 1, 'x'));
    keys.emplace_back(length, '\0');
  }
  // {"\0\0", 2} is there twice.
  keys.erase(keys.begin() + 2);
  expect_distinct(keys);
}

TEST(KeyedKeys, IntegersToTheirEnds) {
  expect_distinct<std::int64_t>(
      {0, 1, -1, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), 256, 1LL << 32U});
  expect_distinct<std::uint64_t>({0, 1, std::numeric_limits<std::uint64_t>::max(), 1ULL << 63U});
  expect_distinct<std::int8_t>({0, -1, 127, -128});
  expect_distinct<std::uint16_t>({0, 1, 255, 256, 65'535});
  expect_distinct<char>({'\0', 'a', '\xFF'});
}

TEST(KeyedKeys, AnIntegerKeyIsNotItsText) {
  Keyed<FixedWindow, int> numbers_of_users({.rate = 1});
  EXPECT_TRUE(numbers_of_users.try_acquire(12, 1, at(kStart)).allowed);
  EXPECT_FALSE(numbers_of_users.try_acquire(12, 1, at(kStart)).allowed);
}

TEST(KeyedKeys, Enumerations) {
  enum class Plan : std::uint8_t { free, paid };
  Keyed<TokenBucket, Plan> limits({.rate = 0, .burst = 1});
  EXPECT_TRUE(limits.try_acquire(Plan::free, 1, at(kStart)).allowed);
  EXPECT_TRUE(limits.try_acquire(Plan::paid, 1, at(kStart)).allowed);
  EXPECT_FALSE(limits.try_acquire(Plan::free, 1, at(kStart)).allowed);
}

TEST(KeyedKeys, TypesOfTheUsersOwn) {
  Keyed<TokenBucket, Address> by_address({.rate = 0, .burst = 1});
  Address one;
  one.octets.fill('\x01');
  Address same = one;
  same.port = 80;
  Address other = one;
  other.octets.back() = '\x02';
  EXPECT_TRUE(by_address.try_acquire(one, 1, at(kStart)).allowed);
  EXPECT_FALSE(by_address.try_acquire(same, 1, at(kStart)).allowed);
  EXPECT_TRUE(by_address.try_acquire(other, 1, at(kStart)).allowed);

  Keyed<SlidingLog, Point> by_point({.rate = 1});
  EXPECT_TRUE(by_point.try_acquire({1, 2}, 1, at(kStart)).allowed);
  EXPECT_TRUE(by_point.try_acquire({2, 1}, 1, at(kStart)).allowed);
  EXPECT_FALSE(by_point.try_acquire({1, 2}, 1, at(kStart)).allowed);
}

TEST(KeyedKeys, ViewsAndLiteralsFindStrings) {
  Keyed<TokenBucket, std::string> limits({.rate = 0, .burst = 3});
  const std::string text = "a user";
  EXPECT_EQ(limits.try_acquire(text, 1, at(kStart)).remaining, 2U);
  EXPECT_EQ(limits.try_acquire(std::string_view(text), 1, at(kStart)).remaining, 1U);
  EXPECT_EQ(limits.try_acquire("a user", 1, at(kStart)).remaining, 0U);
}

// 11 bytes are kept as they are, and above it a digest; neither must be taken for the other, nor for another key.
TEST(KeyedKeys, ManyRandomOnesAreAllApart) {
  Keyed<TokenBucket> limits({.rate = 0, .burst = 1}, {.max_keys = 200'000});
  std::mt19937_64 random(7);
  std::set<std::string> seen;
  for (int i = 0; i < 60'000; ++i) {
    std::string key(random() % 30, '\0');
    for (char& byte : key) byte = static_cast<char>(random() % 3);
    ASSERT_EQ(limits.try_acquire(key, 1, at(kStart)).allowed, seen.insert(key).second);
  }
  EXPECT_EQ(limits.figures().keys, seen.size());
}

}  // namespace
}  // namespace sluice
