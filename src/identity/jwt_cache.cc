#include "identity/jwt_cache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <random>
#include <utility>

namespace sluice::identity {
namespace {

std::uint64_t random_seed() {
  std::random_device random;
  return (std::uint64_t{random()} << 32U) | random();
}

}  // namespace

JwtCache::JwtCache(std::size_t most)
    : seed_(random_seed()), mask_(std::bit_ceil(std::max<std::size_t>(most, kWays) / kWays) - 1) {
  slots_.resize((mask_ + 1) * kWays);
}

std::uint64_t JwtCache::hash(std::string_view token) const {
  return XXH3_64bits_withSeed(token.data(), token.size(), seed_);
}

const Jwt* JwtCache::find(std::string_view token, std::uint64_t generation, std::int64_t utc) {
  const std::uint64_t wanted = hash(token);
  Slot* const set = set_of(wanted);
  for (Slot* slot = set; slot != set + kWays; ++slot) {
    if (slot->hash != wanted || slot->entry == nullptr || slot->entry->token != token) continue;
    const Entry& entry = *slot->entry;
    if (entry.generation == generation && utc >= entry.jwt.valid_from && utc < entry.jwt.valid_until) {
      slot->used = ++clock_;
      return &entry.jwt;
    }
    slot->entry.reset();
    slot->used = 0;
    break;
  }
  return nullptr;
}

void JwtCache::put(std::string_view token, std::uint64_t generation, const Jwt& jwt) {
  if (token.size() > kLongest) return;
  const std::uint64_t wanted = hash(token);
  Slot* const set = set_of(wanted);
  // What is empty was used at 0.
  Slot& slot = *std::min_element(set, set + kWays, [](const Slot& a, const Slot& b) { return a.used < b.used; });
  slot.hash = wanted;
  slot.used = ++clock_;
  slot.entry = std::make_unique<Entry>(Entry{.token = std::string(token), .generation = generation, .jwt = jwt});
}

}  // namespace sluice::identity
