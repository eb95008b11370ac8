// Sixteen bytes that rounds of AES mix.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace sluice::store::memory {

#if defined(__x86_64__)

/// A block in a register, on processors that have AES (is_there()). A value.
class AesBlock {
 public:
  static constexpr std::size_t kSize = 16;
  [[nodiscard]] static bool is_there() noexcept { return __builtin_cpu_supports("aes") != 0; }

  /// Of any 16 bytes.
  [[nodiscard]] static AesBlock load(const void* bytes) noexcept {
    return AesBlock(_mm_loadu_si128(static_cast<const __m128i*>(bytes)));
  }
  /// Of eight bytes and another eight.
  [[nodiscard]] static AesBlock load_halves(const void* low, const void* high) noexcept {
    return AesBlock(_mm_unpacklo_epi64(_mm_loadl_epi64(static_cast<const __m128i*>(low)),
                                       _mm_loadl_epi64(static_cast<const __m128i*>(high))));
  }
  AesBlock& operator^=(const AesBlock& other) noexcept {
    value_ = _mm_xor_si128(value_, other.value_);
    return *this;
  }
  /// One round of AES, with a key of 16 bytes at a multiple of 16. In assembler, as the compiler would inline the
  /// intrinsic only where all is built for processors that have it.
  void round(const unsigned char* key) noexcept {
    asm("aesenc %1, %0" : "+x"(value_) : "m"(*reinterpret_cast<const __m128i*>(key)));
  }
  [[nodiscard]] std::uint64_t low() const noexcept { return static_cast<std::uint64_t>(_mm_cvtsi128_si64(value_)); }
  [[nodiscard]] std::uint64_t high() const noexcept {
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(value_, value_)));
  }

 private:
  explicit AesBlock(__m128i value) noexcept : value_(value) {}
  __m128i value_;
};

#else

/// There is none here: it is never made.
class AesBlock {
 public:
  static constexpr std::size_t kSize = 16;
  [[nodiscard]] static constexpr bool is_there() noexcept { return false; }
  [[nodiscard]] static AesBlock load(const void* /*bytes*/) noexcept { return {}; }
  [[nodiscard]] static AesBlock load_halves(const void* /*low*/, const void* /*high*/) noexcept { return {}; }
  AesBlock& operator^=(const AesBlock& /*other*/) noexcept { return *this; }
  void round(const unsigned char* /*key*/) noexcept {}
  [[nodiscard]] std::uint64_t low() const noexcept { return 0; }
  [[nodiscard]] std::uint64_t high() const noexcept { return 0; }
};

#endif

}  // namespace sluice::store::memory
