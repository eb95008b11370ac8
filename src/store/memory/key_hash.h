// The hashes by which keys are spread over shards and slots, and told apart when they are long.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "store/memory/slot_key.h"

namespace sluice::store::memory {

/// Hashes under secrets drawn at random once per process: whoever chooses keys cannot choose where they go, nor find
/// two that collide. Thread-safe. Cost: a few ns for keys of up to 128 bytes.
class KeyHash {
 public:
  /// How keys of 12 to kQuick bytes are hashed for a table with one limit: by rounds of AES where the processor has
  /// them, which takes a third of the instructions; else by XXH3, as all else is.
  enum class Way : std::uint8_t { aes, xxh3 };

  explicit KeyHash(Way way = best_way()) noexcept;
  /// What this processor can do.
  [[nodiscard]] static Way best_way() noexcept;
  [[nodiscard]] Way way() const noexcept { return way_; }
  /// The place of a limit's key.
  [[nodiscard]] std::uint64_t operator()(std::uint32_t limit_id, std::string_view key) const noexcept;
  /// What stands for the key in a slot. Long keys have a secret of their own, so that place and digest are independent:
  /// two keys are taken for one with a chance of 2^-128.
  [[nodiscard]] SlotKey slot_key(std::string_view key) const noexcept {
    return key.size() <= SlotKey::kLongestPlain ? SlotKey(key) : SlotKey(digest(key));
  }
  /// Both at once for a table with one limit. Long keys are hashed once, to 128 bits. 120 of them are compared: 32 are
  /// the lower half of the place, the others lie in the key.
  struct Spot {
    std::uint64_t place = 0;
    ShortKey key;
  };
  [[nodiscard]] Spot spot(std::string_view key) const noexcept;
  /// The same in registers, and inlined (include key_hash_inline.h). Preconditions: no longer than kQuick; and kWay is
  /// way().
  static constexpr std::size_t kQuick = 128;
  struct QuickSpot {
    std::uint32_t shard = 0;  ///< the upper half of the place
    std::uint64_t head = 0;   ///< its lower half, and the key's head above it: as both lie in a record
    std::uint64_t tail = 0;   ///< the rest of the key
    [[nodiscard]] std::uint32_t hash() const noexcept { return static_cast<std::uint32_t>(head); }
    explicit operator Spot() const noexcept {
      return {std::uint64_t{shard} << 32U | hash(), ShortKey({tail, static_cast<std::uint32_t>(head >> 32U)})};
    }
  };
  template <Way kWay>
  [[nodiscard]] inline QuickSpot quick_spot(std::string_view key) const noexcept;

 private:
  static constexpr std::size_t kSecretSize = 192;
  using Secret = std::array<unsigned char, kSecretSize>;
  struct alignas(16) Secrets {
    Secret place;
    Secret digest;
    Secret rounds;
  };
  static const Secrets& process_secrets();
  [[nodiscard]] KeyDigest digest(std::string_view key) const noexcept;
  [[nodiscard]] static inline QuickSpot spot_of(const KeyDigest& whole) noexcept;
  [[nodiscard]] inline std::uint64_t place_of(const ShortKey::Words& plain) const noexcept;
  [[nodiscard]] inline KeyDigest xxh3(std::string_view key) const noexcept;
  [[nodiscard]] inline KeyDigest aes(std::string_view key) const noexcept;
  const Secrets& secrets_;
  const Way way_;
};

}  // namespace sluice::store::memory
