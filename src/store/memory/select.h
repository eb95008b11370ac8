// A choice that is no branch.
#pragma once

#include <cstdint>

namespace sluice::store::memory {

/// `then` if a equals b, else `otherwise`: where that can't be foreseen. Compilers make a branch of it if they may.
template <typename T>
[[nodiscard, gnu::always_inline]] inline T* where_equal(std::uint64_t a, std::uint64_t b, T* then,
                                                        T* otherwise) noexcept {
#if defined(__x86_64__)
  asm("cmpq %2, %3\n\tcmoveq %1, %0" : "+r"(otherwise) : "r"(then), "r"(a), "r"(b) : "cc");
  return otherwise;
#else
  return a == b ? then : otherwise;
#endif
}

}  // namespace sluice::store::memory
