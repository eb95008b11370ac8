// The hash that spreads keys over shards and slots.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sluice::store::memory {

/// XXH3 of the key under a secret drawn at random once per process, mixed with the limit's id: whoever chooses keys
/// cannot choose where they go. Thread-safe. Cost: a few ns for keys of up to 128 bytes.
class KeyHash {
 public:
  KeyHash();
  [[nodiscard]] std::uint64_t operator()(std::uint32_t limit_id, std::string_view key) const noexcept;

 private:
  static constexpr std::size_t kSecretSize = 192;
  using Secret = std::array<unsigned char, kSecretSize>;
  static const Secret& process_secret();
  const Secret& secret_;
};

}  // namespace sluice::store::memory
