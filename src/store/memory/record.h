// What a shard keeps of one key.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>

#include "algorithm/compiled_limit.h"
#include "store/memory/live_limit.h"

namespace sluice::store::memory {

/// The bytes of a key: short ones in place, longer ones on the heap. Trivially copyable, as records move: whoever drops
/// one for good calls free().
class KeyBytes {
 public:
  static constexpr std::size_t kInline = 27;

  /// False when there is no memory for it; then nothing is held.
  [[nodiscard]] bool set(std::string_view key) noexcept {
    if (key.size() <= kInline) {
      size_ = static_cast<std::uint8_t>(key.size());
      std::memcpy(bytes_, key.data(), key.size());
      return true;
    }
    Far far{new (std::nothrow) char[key.size()], key.size()};
    if (far.data == nullptr) return false;
    std::memcpy(far.data, key.data(), key.size());
    size_ = kFar;
    std::memcpy(bytes_, &far, sizeof far);
    return true;
  }
  void free() noexcept {
    if (size_ == kFar) delete[] far().data;
  }
  [[nodiscard]] std::string_view view() const noexcept {
    if (size_ != kFar) return {bytes_, size_};
    const Far there = far();
    return {there.data, there.size};
  }
  [[nodiscard]] bool equals(std::string_view key) const noexcept {
    if (key.size() <= kInline) return key.size() == size_ && same_bytes(bytes_, key.data(), size_);
    return size_ == kFar && view() == key;
  }
  /// Bytes on the heap.
  [[nodiscard]] std::size_t heap_bytes() const noexcept { return size_ == kFar ? far().size : 0; }

 private:
  struct Far {
    char* data;
    std::size_t size;
  };
  static constexpr std::uint8_t kFar = 255;
  static_assert(sizeof(Far) <= kInline);

  /// memcmp for few bytes, in place: a call costs as much as comparing.
  [[nodiscard]] static bool same_bytes(const char* a, const char* b, std::size_t size) noexcept {
    const auto differ = [a, b]<typename Word>(std::size_t at, Word /*width*/) {
      Word x;
      Word y;
      std::memcpy(&x, a + at, sizeof x);
      std::memcpy(&y, b + at, sizeof y);
      return x != y;
    };
    if (size >= 8) {
      for (std::size_t at = 0; at + 8 < size; at += 8) {
        if (differ(at, std::uint64_t{})) return false;
      }
      return !differ(size - 8, std::uint64_t{});
    }
    if (size >= 4) return !differ(0, std::uint32_t{}) && !differ(size - 4, std::uint32_t{});
    for (std::size_t at = 0; at < size; ++at) {
      if (a[at] != b[at]) return false;
    }
    return true;
  }
  [[nodiscard]] Far far() const noexcept {
    Far there{};
    std::memcpy(&there, bytes_, sizeof there);
    return there;
  }
  std::uint8_t size_ = 0;
  char bytes_[kInline] = {};
};

/// One cache line: whatever a decision needs of a key is in one place. Bytes of zero are an empty slot.
struct alignas(64) Record {
  algorithm::CompiledLimit::State state;
  const LiveLimit* limit = nullptr;  ///< whose numbers made the state; one share of it. Null: an empty slot
  std::uint32_t hash = 0;
  KeyBytes key;

  [[nodiscard]] bool is_empty() const noexcept { return limit == nullptr; }

  /// How long until the state equals one never seen, so that the record may go; 0 or less: it may go now;
  /// algorithm::kNever: at no time.
  [[nodiscard]] std::int64_t life_left(Time now) const noexcept {
    const std::int64_t end = limit->compiled.expires_at(state);
    if (end == algorithm::kNever || end == algorithm::kNeverSeen) return end;
    return end - limit->compiled.instant(now);
  }
};
static_assert(sizeof(Record) == 64 && std::is_trivially_copyable_v<Record>);

}  // namespace sluice::store::memory
