// Keys that are the same, in the same order, in every program that is compared.
// bench/library/governor/src/keys.rs is the same in Rust.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::bench {

/// Spreads numbers: no two have the same result (the finalizer of SplitMix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

constexpr std::string_view kPrefix = "user-";
constexpr std::size_t kKeyBytes = kPrefix.size() + 16;

/// Writes key number `i` ("user-" and 16 hexadecimal digits) over `key`. Cheap, so that ten million keys need not lie
/// in memory beside what is measured.
inline void write_key(std::uint64_t i, std::string& key) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::uint64_t number = mix(i);
  key.resize(kKeyBytes);
  kPrefix.copy(key.data(), kPrefix.size());
  for (std::size_t at = kPrefix.size(); at < kKeyBytes; ++at) {
    key[at] = digits[number >> 60U];
    number <<= 4U;
  }
}

inline std::vector<std::string> string_keys(std::uint64_t count) {
  std::vector<std::string> keys(count);
  for (std::uint64_t i = 0; i < count; ++i) write_key(i, keys[i]);
  return keys;
}

/// 0 … count − 1 shuffled; another number, another order.
inline std::vector<std::uint32_t> shuffled(std::uint32_t count, std::uint32_t number) {
  std::vector<std::uint32_t> order(count);
  for (std::uint32_t i = 0; i < count; ++i) order[i] = i;
  for (std::uint32_t i = count - 1; i > 0; --i) {
    std::swap(order[i], order[mix(std::uint64_t{number} << 32U | i) % (std::uint64_t{i} + 1)]);
  }
  return order;
}

/// Goes through 0 … count − 1 again and again.
class Turn {
 public:
  Turn(std::size_t count, std::size_t first) : at_(first), count_(count) {}
  std::size_t next() {
    const std::size_t now = at_;
    at_ = at_ + 1 == count_ ? 0 : at_ + 1;
    return now;
  }

 private:
  std::size_t at_;
  std::size_t count_;
};

}  // namespace sluice::bench
