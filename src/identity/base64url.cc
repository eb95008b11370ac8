#include "identity/base64url.h"

#include <array>
#include <cstdint>

namespace sluice::identity {
namespace {

constexpr std::uint8_t kNone = 0xff;

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNone);
  std::uint8_t next = 0;
  for (const char c : kAlphabet) values[static_cast<unsigned char>(c)] = next++;
  return values;
}();

}  // namespace

std::string encode_base64url(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() * 4 + 2) / 3);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char byte : bytes) {
    bits = bits << 8U | static_cast<unsigned char>(byte);
    for (count += 8; count >= 6; count -= 6) out.push_back(kAlphabet[bits >> (count - 6) & 0x3FU]);
  }
  if (count > 0) out.push_back(kAlphabet[bits << (6 - count) & 0x3FU]);
  return out;
}

bool decode_base64url(std::string_view text, std::string& out) {
  out.clear();
  if (text.size() % 4 == 1) return false;
  out.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const std::uint8_t value = kValues[static_cast<unsigned char>(c)];
    if (value == kNone) return false;
    bits = bits << 6U | value;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<char>(bits >> count & 0xffU));
  }
  return (bits & ((1U << count) - 1)) == 0;
}

}  // namespace sluice::identity
