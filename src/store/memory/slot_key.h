// A key as it lies in a slot.
#pragma once

#include <array>
#include <cassert>
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
    assert(key.size() <= kLongestPlain);
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
/// which the hash beside it adds 32. Four bits are left for the owner of the slot. Zeros are no key. A value,
/// made and compared in registers.
class ShortKey {
 public:
  static constexpr std::size_t kLongestPlain = 11;

  ShortKey() = default;
  /// A key as two words, to be kept in registers.
  struct Words {
    std::uint64_t tail = 0;
    std::uint32_t head = 0;
  };
  explicit ShortKey(const Words& words) noexcept : head_(words.head) {
    std::memcpy(tail_.data(), &words.tail, sizeof words.tail);
  }
  /// Precondition: no longer than kLongestPlain.
  [[nodiscard]] static Words words(std::string_view key) noexcept {
    const std::uint32_t last = key.size() < 8 ? 0 : last_four(key) & ~kOwn;
    return {first_eight(key), last | static_cast<std::uint32_t>(key.size() + 1)};
  }
  /// The head of a digest's key, in the upper half of the word, of which it takes the upper 24 bits; the lower half is
  /// left as it is.
  [[nodiscard]] static std::uint64_t digest_head(std::uint64_t word) noexcept {
    return (word & ~(std::uint64_t{kOwn} << 32U)) | std::uint64_t{kIsDigest} << 32U;
  }
  /// The owner's bits, where digest_head() has them.
  [[nodiscard]] static std::uint64_t owners_bits_above(std::uint32_t bits) noexcept {
    return std::uint64_t{bits} << (32U + kOwnersShift);
  }

  [[nodiscard]] bool is_none() const noexcept { return (head_ & kKind) == 0; }
  /// Is it the same key, whatever the owner's bits?
  [[nodiscard]] bool is_same(const ShortKey& other) const noexcept {
    return tail() == other.tail() && ((head_ ^ other.head_) & ~kOwners) == 0;
  }
  [[nodiscard]] std::uint32_t owners_bits() const noexcept { return (head_ & kOwners) >> kOwnersShift; }
  void set_owners_bits(std::uint32_t bits) noexcept { head_ = (head_ & ~kOwners) | bits << kOwnersShift; }

 private:
  static constexpr std::uint32_t kKind = 0x0F;
  static constexpr std::uint32_t kOwners = 0xF0;
  static constexpr std::uint32_t kOwnersShift = 4;
  static constexpr std::uint32_t kOwn = 0xFF;  // the bits that are not the key's
  static constexpr std::uint32_t kIsDigest = 0x0F;

  template <typename Word>
  static Word load(const char* from) noexcept {
    Word word = 0;
    std::memcpy(&word, from, sizeof word);
    return word;
  }
  // Of a key of known length, all its bytes up to eight, some of them twice.
  static std::uint64_t first_eight(std::string_view key) noexcept {
    const char* const begin = key.data();
    const std::size_t size = key.size();
    if (size >= 8) return load<std::uint64_t>(begin);
    if (size >= 4) return std::uint64_t{load<std::uint32_t>(begin + size - 4)} << 32U | load<std::uint32_t>(begin);
    if (size == 0) return 0;
    const auto byte = [&](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(begin[i])}; };
    return byte(0) | byte(size / 2) << 8U | byte(size - 1) << 16U;
  }
  // Of a key of eight bytes or more. The upper three are those behind the eighth, of one of eleven.
  static std::uint32_t last_four(std::string_view key) noexcept {
    return load<std::uint32_t>(key.data() + key.size() - 4);
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
