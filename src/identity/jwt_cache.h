// Tokens that were verified, so that each costs its signature once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "identity/jwt.h"

namespace sluice::identity {

/// Remembers good tokens by the whole of their text, until they end; bounded: where there is no room, the one of eight
/// that was used longest ago goes. Only what a trusted key has signed comes in, so strangers cannot fill it. Not
/// thread-safe. Cost of a hit: a hash and a comparison of the token, some 100 ns for a KiB.
class JwtCache {
 public:
  /// Room for at least `most` tokens, taken as they come. Longer tokens than kLongest are not kept.
  explicit JwtCache(std::size_t most);
  static constexpr std::size_t kLongest = std::size_t{8} * 1024;

  /// Null: not here, or not of this `generation` of the keys, or not good at `utc`. Valid until the next put().
  [[nodiscard]] const Jwt* find(std::string_view token, std::uint64_t generation, std::int64_t utc);
  /// Precondition: no fault.
  void put(std::string_view token, std::uint64_t generation, const Jwt& jwt);

 private:
  struct Entry {
    std::string token;
    std::uint64_t generation = 0;
    Jwt jwt;
  };
  struct Slot {
    std::uint64_t hash = 0;
    std::uint64_t used = 0;
    std::unique_ptr<Entry> entry;
  };
  static constexpr std::size_t kWays = 8;

  [[nodiscard]] Slot* set_of(std::uint64_t hash) { return &slots_[(hash & mask_) * kWays]; }
  [[nodiscard]] std::uint64_t hash(std::string_view token) const;

  std::uint64_t seed_;  ///< of this process, so that nobody can choose tokens that meet
  std::size_t mask_;
  std::uint64_t clock_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace sluice::identity
