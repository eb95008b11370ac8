#include "store/memory/key_hash.h"

#include <cstring>
#include <random>

#include "store/memory/key_hash_inline.h"

namespace sluice::store::memory {

const KeyHash::Secrets& KeyHash::process_secrets() {
  static const Secrets kSecrets = [] {
    Secrets drawn;
    std::random_device entropy;
    for (Secret* secret : {&drawn.place, &drawn.digest, &drawn.rounds}) {
      for (std::size_t i = 0; i < secret->size(); i += sizeof(std::uint32_t)) {
        const std::uint32_t word = entropy();
        std::memcpy(secret->data() + i, &word, sizeof word);
      }
    }
    return drawn;
  }();
  return kSecrets;
}

KeyHash::Way KeyHash::best_way() noexcept { return AesBlock::is_there() ? Way::aes : Way::xxh3; }

KeyHash::KeyHash(Way way) noexcept : secrets_(process_secrets()), way_(way) {
  static_assert(kSecretSize >= XXH3_SECRET_SIZE_MIN);
}

std::uint64_t KeyHash::operator()(std::uint32_t limit_id, std::string_view key) const noexcept {
  constexpr std::uint64_t odd = 0x9E3779B97F4A7C15;
  return XXH3_64bits_withSecret(key.data(), key.size(), secrets_.place.data(), kSecretSize) ^ limit_id * odd;
}

KeyDigest KeyHash::digest(std::string_view key) const noexcept {
  const XXH128_hash_t hash = XXH3_128bits_withSecret(key.data(), key.size(), secrets_.digest.data(), kSecretSize);
  return {hash.low64, hash.high64};
}

[[gnu::flatten]] KeyHash::Spot KeyHash::spot(std::string_view key) const noexcept {
  if (key.size() > kQuick) return Spot(spot_of(digest(key)));
  return Spot(way_ == Way::aes ? quick_spot<Way::aes>(key) : quick_spot<Way::xxh3>(key));
}

}  // namespace sluice::store::memory
