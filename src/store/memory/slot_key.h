// A key as it lies in a slot.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace sluice::store::memory {

/// 28 bytes that stand for a key: up to 27 bytes the key itself, longer ones 128 bits of hash under a secret of the
/// process (see KeyHash). A value; comparing two costs the same whatever they hold.
class SlotKey {
 public:
  static constexpr std::size_t kLongestPlain = 27;
  struct Digest {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
  };

  SlotKey() = default;
  /// Precondition: no longer than kLongestPlain.
  explicit SlotKey(std::string_view key) noexcept {
    bytes_[0] = static_cast<char>(key.size());
    if (!key.empty()) std::memcpy(&bytes_[1], key.data(), key.size());
  }
  explicit SlotKey(const Digest& digest) noexcept {
    bytes_[0] = kIsDigest;
    std::memcpy(&bytes_[1], &digest, sizeof digest);
  }

  friend bool operator==(const SlotKey& a, const SlotKey& b) noexcept {
    return std::memcmp(a.bytes_.data(), b.bytes_.data(), sizeof a.bytes_) == 0;
  }

 private:
  static constexpr char kIsDigest = 127;
  std::array<char, kLongestPlain + 1> bytes_{};
};

}  // namespace sluice::store::memory
