// What a shard keeps of one key where all keys have the same limit.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "algorithm/cell.h"
#include "algorithm/compiled_limit.h"
#include "algorithm/narrow_bucket.h"
#include "store/memory/slot_key.h"

namespace sluice::store::memory {

/// One of the numbers that the limit has had, told apart by a small index.
struct Generation {
  algorithm::CompiledLimit compiled;
  std::uint32_t index = 0;
  algorithm::NarrowBucket bucket = compiled.narrow_bucket();
  std::uint64_t in_head = ShortKey::owners_bits_above(index);  ///< what records of it have in their head()
};

/// 32 bytes, two to a cache line; bytes of zero are an empty slot. See Shard for what it must be able to do.
struct KeyedRecord {
  using Numbers = Generation;
  using Key = ShortKey;
  static constexpr std::uint32_t kGenerations = 16;
  /// The generations that records may be of, by index.
  using Book = std::array<const Generation*, kGenerations>;
  static constexpr std::uint32_t kGroup = 2;
  // Records are small, so there is room for lines in which a key is found at once.
  static constexpr std::uint32_t kSlotsForHundred = 180;
  static constexpr std::uint32_t kMostFull = 65;

  algorithm::Cell cell;
  std::uint32_t hash = 0;
  ShortKey key;  ///< its owner's bits: the index of the generation that made the cell

  KeyedRecord() = default;
  /// Takes over the cell.
  KeyedRecord(std::uint32_t hash_of_key, const Generation& numbers, const ShortKey& of,
              const algorithm::Cell& state) noexcept
      : cell(state), hash(hash_of_key), key(of) {
    key.set_owners_bits(numbers.index);
  }

  [[nodiscard]] bool is_empty() const noexcept { return key.is_none(); }
  /// Makes the slot empty, without giving up what it holds.
  void make_empty() noexcept { key = ShortKey(); }
  [[nodiscard]] bool is_of(const Generation& /*numbers*/, const ShortKey& other) const noexcept {
    return key.is_same(other);
  }
  /// The hash, and the key's head above it, with the owner's bits.
  [[nodiscard]] std::uint64_t head() const noexcept { return word_at(kHead); }
  /// The rest of the key.
  [[nodiscard]] std::uint64_t tail() const noexcept { return word_at(kTail); }
  [[nodiscard]] bool is_made_by(const Generation& numbers) const noexcept { return key.owners_bits() == numbers.index; }
  [[nodiscard]] const algorithm::CompiledLimit& compiled(const Book& book) const noexcept {
    return book[key.owners_bits()]->compiled;
  }
  void now_made_by(const Generation& numbers) noexcept { key.set_owners_bits(numbers.index); }
  [[nodiscard]] static const algorithm::CompiledLimit& compiled_of(const Generation& numbers) noexcept {
    return numbers.compiled;
  }
  /// Gives up what it holds.
  void forget(const Book& book) const noexcept {
    algorithm::Cell last = cell;
    compiled(book).clear(last);
  }

 private:
  // Both members, or the latter's end, in one word.
  static constexpr std::size_t kHead = sizeof(algorithm::Cell);
  static constexpr std::size_t kTail = kHead + sizeof(std::uint64_t);
  [[nodiscard]] std::uint64_t word_at(std::size_t offset) const noexcept {
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t word = 0;
    std::memcpy(&word, std::bit_cast<const char*>(this) + offset, sizeof word);
    return word;
  }
};
static_assert(sizeof(KeyedRecord) == 32 && std::is_trivially_copyable_v<KeyedRecord>);

}  // namespace sluice::store::memory
