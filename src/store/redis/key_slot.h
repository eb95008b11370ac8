// Which slot of a cluster a key lies in.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::store::redis {

inline constexpr std::size_t kSlots = 16384;

/// What is hashed of a key: what stands between its first '{' and the next '}', or the whole key when there is no such
/// thing or nothing in it.
[[nodiscard]] std::string_view hashed_part(std::string_view key);
/// CRC-16 (XMODEM) of that, modulo the number of slots. Cost: some ns a byte.
[[nodiscard]] std::uint16_t key_slot(std::string_view key);

}  // namespace sluice::store::redis
