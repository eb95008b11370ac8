// KeyHash::quick_spot(), for whoever needs it in the middle of other work.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "algorithm/int128.h"
#include "store/memory/aes_block.h"
#include "store/memory/key_hash.h"

namespace sluice::store::memory {

inline KeyHash::QuickSpot KeyHash::spot_of(const KeyDigest& whole) noexcept {
  // The lower half of `low` is the hash in the shard; the upper one, but for 8 bits, lies in the key, as `high` does.
  return {.shard = static_cast<std::uint32_t>(whole.high >> 32U),
          .head = ShortKey::digest_head(whole.low),
          .tail = whole.high};
}

// As XXH3 mixes keys of 9 to 16 bytes; these are always 12, as ShortKey has them.
inline std::uint64_t KeyHash::place_of(const ShortKey::Words& plain) const noexcept {
  const auto word = [this](std::size_t i) {
    std::uint64_t secret = 0;
    std::memcpy(&secret, secrets_.place.data() + i * sizeof secret, sizeof secret);
    return secret;
  };
  const std::uint64_t first = plain.tail ^ word(0);
  const std::uint64_t second = plain.head ^ word(1);
  const algorithm::Uint128 product = algorithm::Uint128{first} * second;
  std::uint64_t mixed = __builtin_bswap64(first) + second +
                        (static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U));
  mixed ^= mixed >> 37U;
  mixed *= 0x165667919E3779F9;
  return mixed ^ mixed >> 32U;
}

// Who calls it should be flattened: gcc finds the hash too long to inline, as it does not see how little the known size
// leaves of it.
[[gnu::always_inline]] inline KeyDigest KeyHash::xxh3(std::string_view key) const noexcept {
  if (key.size() <= ShortKey::kLongestPlain || key.size() > kQuick) __builtin_unreachable();
  const XXH128_hash_t hash = XXH3_128bits_withSecret(key.data(), key.size(), secrets_.digest.data(), kSecretSize);
  return {hash.low64, hash.high64};
}

// The key's blocks, the last of which may overlap the one before, chained through four rounds of AES each, and two more
// at the end. Each length begins with a block of its own. For two keys of which neither depends on the secret, four
// rounds bring any given difference about with a chance of 2^-113 at most (Keliher and Sui, 2007), so this is how
// likely a difference of one block is taken back by the next; the end spreads what is left over all bits. It is no hash
// for those who see its results.
[[gnu::always_inline]] inline KeyDigest KeyHash::aes(std::string_view key) const noexcept {
  constexpr std::size_t rounds = 4;
  constexpr std::size_t last_rounds = 2;
  static_assert((rounds + last_rounds) * AesBlock::kSize + kQuick + AesBlock::kSize <= 2 * kSecretSize);
  if (key.size() <= ShortKey::kLongestPlain || key.size() > kQuick) __builtin_unreachable();
  const char* block = key.data();
  const char* const last = block + key.size() - AesBlock::kSize;
  AesBlock state = AesBlock::load(secrets_.digest.data() + key.size());
  const auto mix = [&state, this](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) state.round(secrets_.rounds.data() + i * AesBlock::kSize);
  };
  if (key.size() <= AesBlock::kSize) [[unlikely]] {
    state ^= AesBlock::load_halves(block, last + AesBlock::kSize / 2);
    mix(0, rounds);
  } else {
    while (key.size() > 2 * AesBlock::kSize && block + AesBlock::kSize < last) [[unlikely]] {
      state ^= AesBlock::load(block);
      mix(0, rounds);
      block += AesBlock::kSize;
    }
    state ^= AesBlock::load(block);
    mix(0, rounds);
    state ^= AesBlock::load(last);
  }
  mix(rounds, last_rounds);
  return {state.low(), state.high()};
}

template <KeyHash::Way kWay>
[[gnu::always_inline]] inline KeyHash::QuickSpot KeyHash::quick_spot(std::string_view key) const noexcept {
  if (key.size() > ShortKey::kLongestPlain) return spot_of(kWay == Way::aes ? aes(key) : xxh3(key));
  const ShortKey::Words plain = ShortKey::words(key);
  const std::uint64_t place = place_of(plain);
  return {.shard = static_cast<std::uint32_t>(place >> 32U),
          .head = std::uint64_t{plain.head} << 32U | static_cast<std::uint32_t>(place),
          .tail = plain.tail};
}

}  // namespace sluice::store::memory
