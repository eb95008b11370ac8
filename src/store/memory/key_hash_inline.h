// KeyHash::quick_spot(), for whoever needs it in the middle of other work.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "algorithm/int128.h"
#include "store/memory/key_hash.h"

namespace sluice::store::memory {

inline KeyHash::QuickSpot KeyHash::spot_of(const KeyDigest& whole) noexcept {
  // The place is used from below: 32 bits, and some for the shard. The key keeps the upper 24, and all of `high`.
  return {whole.low, ShortKey::words(KeyDigest{whole.high, whole.low >> 40U})};
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
[[gnu::always_inline]] inline KeyDigest KeyHash::quick_digest(std::string_view key) const noexcept {
  if (key.size() <= ShortKey::kLongestPlain || key.size() > kQuick) __builtin_unreachable();
  const XXH128_hash_t hash = XXH3_128bits_withSecret(key.data(), key.size(), secrets_.digest.data(), kSecretSize);
  return {hash.low64, hash.high64};
}

[[gnu::always_inline]] inline KeyHash::QuickSpot KeyHash::quick_spot(std::string_view key) const noexcept {
  if (key.size() > kQuick) return spot_of(digest(key));
  if (key.size() > ShortKey::kLongestPlain) return spot_of(quick_digest(key));
  const ShortKey::Words plain = ShortKey::words(key);
  return {place_of(plain), plain};
}

}  // namespace sluice::store::memory
