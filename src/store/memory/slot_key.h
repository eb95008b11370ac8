// A key as it lies in a slot.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace sluice::store::memory {

/// 128 bits of hash that stand for a long key.
struct KeyDigest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

/// 20 bytes that stand for a key: up to 19 bytes the key itself, longer ones a digest under a secret of the process
/// (see KeyHash). A value; comparing two costs the same whatever they hold.
class SlotKey {
 public:
  static constexpr std::size_t kLongestPlain = 19;

  SlotKey() = default;
  /// Precondition: no longer than kLongestPlain.
  explicit SlotKey(std::string_view key) noexcept {
    bytes_[0] = static_cast<char>(key.size());
    if (!key.empty()) std::memcpy(&bytes_[1], key.data(), key.size());
  }
  explicit SlotKey(const KeyDigest& digest) noexcept {
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

/// 12 bytes that stand for a key where space counts: up to 11 bytes the key itself, longer ones 88 bits of a digest, to
/// which the place in the table adds the rest. Four bits are left for the owner of the slot. Zeros are no key. A value.
class ShortKey {
 public:
  static constexpr std::size_t kLongestPlain = 11;

  ShortKey() = default;
  /// Precondition: no longer than kLongestPlain.
  explicit ShortKey(std::string_view key) noexcept : ShortKey(key.data(), key.size(), key.size() + 1) {}
  explicit ShortKey(const KeyDigest& digest) noexcept : ShortKey(&digest, kLongestPlain, kIsDigest) {}

  [[nodiscard]] bool is_none() const noexcept { return (head_ & kKind) == 0; }
  /// Is it the same key, whatever the owner's bits?
  [[nodiscard]] bool is_same(const ShortKey& other) const noexcept {
    return tail() == other.tail() && ((head_ ^ other.head_) & ~kOwners) == 0;
  }
  [[nodiscard]] std::uint32_t owners_bits() const noexcept { return (head_ & kOwners) >> 4U; }
  void set_owners_bits(std::uint32_t bits) noexcept { head_ = (head_ & ~kOwners) | bits << 4U; }

 private:
  static constexpr std::uint32_t kKind = 0x0F;
  static constexpr std::uint32_t kOwners = 0xF0;
  static constexpr std::uint32_t kIsDigest = 0x0F;

  ShortKey(const void* bytes, std::size_t size, std::size_t kind) noexcept {
    std::array<char, kLongestPlain + 1> padded{};
    if (size > 0) std::memcpy(&padded[1], bytes, size);
    std::memcpy(&head_, padded.data(), sizeof head_);
    std::memcpy(tail_.data(), &padded[4], sizeof tail_);
    head_ |= static_cast<std::uint32_t>(kind);  // the first byte, on little-endian machines
  }
  [[nodiscard]] std::uint64_t tail() const noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, tail_.data(), sizeof word);
    return word;
  }

  std::uint32_t head_ = 0;
  std::array<char, 8> tail_{};
};
static_assert(sizeof(ShortKey) == 12 && alignof(ShortKey) == 4);

}  // namespace sluice::store::memory
