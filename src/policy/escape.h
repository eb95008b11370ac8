// Any bytes as printable text, one to one.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::policy {

/// Which bytes stand for themselves; all others become %XX.
class PlainBytes {
 public:
  /// Letters, digits and `others`.
  constexpr explicit PlainBytes(std::string_view others) {
    for (char c = '0'; c <= '9'; ++c) set(c);
    for (char c = 'a'; c <= 'z'; ++c) set(c);
    for (char c = 'A'; c <= 'Z'; ++c) set(c);
    for (const char c : others) set(c);
  }
  [[nodiscard]] constexpr bool contains(char c) const { return plain_[static_cast<unsigned char>(c)]; }

 private:
  constexpr void set(char c) { plain_[static_cast<unsigned char>(c)] = true; }
  std::array<bool, 256> plain_{};
};

/// Appends `text` with every byte outside `plain` as %XX. Cost: one table look-up a byte, and a copy per plain run.
void append_escaped(std::string_view text, const PlainBytes& plain, std::string& out);

/// Appends '#' and the first 128 bits of the SHA-256 of `text` as 32 hexadecimal digits: 33 bytes.
void append_digest(std::string_view text, std::string& out);
inline constexpr std::size_t kDigestBytes = 33;

}  // namespace sluice::policy
