// Where keys go, and that none is taken for another.
#include "store/memory/key_hash.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::store::memory {
namespace {

// Keys as people make them: much alike, of many lengths.
std::vector<std::string> much_alike(std::size_t length) {
  std::vector<std::string> keys;
  for (int i = 0; i < 20'000; ++i) {
    const std::string number = std::to_string(i);
    if (number.size() > length) break;
    const std::size_t front = (length - number.size()) / 3;
    keys.push_back(std::string(front, 'k') + number + std::string(length - front - number.size(), '0'));
  }
  return keys;
}

// The squared distances of the counts from their mean, over the mean: about 1 where they are random.
template <std::size_t kSize>
double unevenness(const std::array<std::uint32_t, kSize>& counts) {
  double sum = 0;
  for (const std::uint32_t count : counts) sum += count;
  const double mean = sum / kSize;
  double distances = 0;
  for (const std::uint32_t count : counts) distances += (count - mean) * (count - mean) / mean;
  return distances / kSize;
}

// The ways that this processor has.
std::vector<KeyHash::Way> ways() {
  std::vector<KeyHash::Way> result{KeyHash::Way::xxh3};
  if (KeyHash::best_way() == KeyHash::Way::aes) result.push_back(KeyHash::Way::aes);
  return result;
}

class KeyHashOf : public ::testing::TestWithParam<std::size_t> {};

TEST_P(KeyHashOf, SpreadsKeysOverShardsAndSlots) {
  for (const KeyHash::Way way : ways()) {
    const KeyHash hash(way);
    std::array<std::uint32_t, 256> by_shard{};
    std::array<std::uint32_t, 256> by_slot{};
    for (const std::string& key : much_alike(GetParam())) {
      const std::uint64_t place = hash.spot(key).place;
      ++by_shard[place >> 32U & 0xFFU];
      ++by_slot[place >> 24U & 0xFFU];
    }
    EXPECT_LT(unevenness(by_shard), 2);
    EXPECT_LT(unevenness(by_slot), 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, KeyHashOf,
                         ::testing::Values(6, 8, 11, 12, 15, 16, 17, 21, 24, 32, 33, 36, 48, 64, 65, 128, 200));

class KeyHashBy : public ::testing::TestWithParam<KeyHash::Way> {};

TEST_P(KeyHashBy, KeysAreToldApartWhateverTheirLengths) {
  const KeyHash hash(GetParam());
  std::set<std::array<char, sizeof(ShortKey)>> seen;
  std::size_t keys = 0;
  const auto add = [&](const std::string& key) {
    std::array<char, sizeof(ShortKey)> bytes{};
    const ShortKey short_key = hash.spot(key).key;
    std::memcpy(bytes.data(), &short_key, sizeof short_key);
    seen.insert(bytes);
    ++keys;
  };
  // Of one byte over and over, in which every word is the same; and with one other byte somewhere.
  for (std::size_t length = 0; length <= 300; ++length) {
    add(std::string(length, 'a'));
    for (std::size_t i = 0; i < length; ++i) {
      std::string key(length, 'a');
      key[i] = 'b';
      add(key);
    }
  }
  EXPECT_EQ(seen.size(), keys);
}

// Whoever sees where keys go could else make many that go to one place: each byte must reach all bits of what is kept.
TEST_P(KeyHashBy, EveryBitOfAKeyChangesHalfOfTheHash) {
  const KeyHash hash(GetParam());
  for (const std::size_t length : {12U, 16U, 17U, 21U, 32U, 33U, 40U, 64U, 100U, 128U}) {
    const std::string key(length, 'k');
    const std::uint64_t place = hash.spot(key).place;
    double changed = 0;
    for (std::size_t bit = 0; bit < length * 8; ++bit) {
      std::string other = key;
      other[bit / 8] = static_cast<char>(other[bit / 8] ^ 1 << bit % 8);
      changed += std::popcount(place ^ hash.spot(other).place);
    }
    EXPECT_NEAR(changed / static_cast<double>(length * 8), 32, 3) << length;
  }
}

TEST_P(KeyHashBy, ReadsNothingBesideTheKey) {
  const KeyHash hash(GetParam());
  for (std::size_t length = 0; length <= 130; ++length) {
    const std::string key(length, 'x');
    const std::string among = "before" + key + "behind";
    const KeyHash::Spot alone = hash.spot(key);
    const KeyHash::Spot inside = hash.spot(std::string_view(among).substr(6, length));
    EXPECT_EQ(alone.place, inside.place);
    EXPECT_TRUE(alone.key.is_same(inside.key));
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, KeyHashBy, ::testing::ValuesIn(ways()));

}  // namespace
}  // namespace sluice::store::memory
