// Over which lane of several a key goes.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::queue {

/// The same for equal text in every process and version, as the order of a key rests on it (FNV-1a). From 0.
[[nodiscard]] constexpr std::uint64_t spread_over(std::string_view text, std::uint64_t lanes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  // The low bits of FNV are its weakest.
  return (hash >> 32U) % lanes;
}

}  // namespace sluice::queue
