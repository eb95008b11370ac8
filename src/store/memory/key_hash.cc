#include "store/memory/key_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <random>

namespace sluice::store::memory {

const KeyHash::Secret& KeyHash::process_secret() {
  static const Secret secret = [] {
    Secret drawn;
    std::random_device entropy;
    for (std::size_t i = 0; i < drawn.size(); i += sizeof(std::uint32_t)) {
      const std::uint32_t word = entropy();
      std::memcpy(drawn.data() + i, &word, sizeof word);
    }
    return drawn;
  }();
  return secret;
}

KeyHash::KeyHash() : secret_(process_secret()) { static_assert(kSecretSize >= XXH3_SECRET_SIZE_MIN); }

std::uint64_t KeyHash::operator()(std::uint32_t limit_id, std::string_view key) const noexcept {
  constexpr std::uint64_t odd = 0x9E3779B97F4A7C15;
  return XXH3_64bits_withSecret(key.data(), key.size(), secret_.data(), secret_.size()) ^ limit_id * odd;
}

}  // namespace sluice::store::memory
