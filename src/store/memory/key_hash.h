// The hashes by which keys are spread over shards and slots, and told apart when they are long.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "store/memory/slot_key.h"

namespace sluice::store::memory {

/// XXH3 under secrets drawn at random once per process: whoever chooses keys cannot choose where they go, nor find two
/// that collide. Thread-safe. Cost: a few ns for keys of up to 128 bytes.
class KeyHash {
 public:
  KeyHash();
  /// The place of a limit's key.
  [[nodiscard]] std::uint64_t operator()(std::uint32_t limit_id, std::string_view key) const noexcept;
  /// What stands for the key in a slot. Long keys have a secret of their own, so that place and digest are independent:
  /// two keys are taken for one with a chance of 2^-128.
  [[nodiscard]] SlotKey slot_key(std::string_view key) const noexcept {
    return key.size() <= SlotKey::kLongestPlain ? SlotKey(key) : SlotKey(digest(key));
  }
  /// Both at once for a table with one limit. Long keys are hashed once, to 128 bits. 88 of them lie in the key; of the
  /// others the table compares 32, and those that tell the shard. So two keys are taken for one with a chance of 2^-120
  /// at most.
  struct Spot {
    std::uint64_t place = 0;
    ShortKey key;
  };
  [[nodiscard]] Spot spot(std::string_view key) const noexcept;
  /// The same in registers, and inlined (include key_hash_inline.h), but for keys of more than kQuick bytes.
  static constexpr std::size_t kQuick = 128;
  struct QuickSpot {
    std::uint64_t place = 0;
    ShortKey::Words key;
    explicit operator Spot() const noexcept { return {place, ShortKey(key)}; }
  };
  [[nodiscard]] inline QuickSpot quick_spot(std::string_view key) const noexcept;

 private:
  static constexpr std::size_t kSecretSize = 192;
  using Secret = std::array<unsigned char, kSecretSize>;
  struct Secrets {
    Secret place;
    Secret digest;
  };
  static const Secrets& process_secrets();
  [[nodiscard]] KeyDigest digest(std::string_view key) const noexcept;
  [[nodiscard]] static inline QuickSpot spot_of(const KeyDigest& whole) noexcept;
  [[nodiscard]] inline std::uint64_t place_of(const ShortKey::Words& plain) const noexcept;
  [[nodiscard]] inline KeyDigest quick_digest(std::string_view key) const noexcept;
  const Secrets& secrets_;
};

}  // namespace sluice::store::memory
