// The limits that commands bring, made once for equal numbers.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "store/charge.h"

namespace sluice::resp {

/// The numbers of a token bucket, within the ranges of sluice/limit.h.
struct Bucket {
  std::uint64_t rate = 1;
  std::chrono::nanoseconds period{1'000'000'000};
  std::uint64_t burst = 1;
};

/// One per io thread; not thread-safe. Services use few kinds of numbers: those used lately are at hand. All have one
/// identity, so a key is one counter, whatever numbers it is asked with (its state is converted, as when a limit of a
/// policy is changed); no limit of a policy has it.
class ThrottleLimits {
 public:
  ThrottleLimits();
  /// The limit for these numbers. Keep a share of it while a store may use it. Cost: a comparison; an
  /// allocation for numbers not seen lately.
  [[nodiscard]] const std::shared_ptr<const store::CountedLimit>& of(const Bucket& bucket);

 private:
  static constexpr std::size_t kKept = 256;
  std::string identity_;
  std::uint32_t id_;
  std::array<std::shared_ptr<const store::CountedLimit>, kKept> kept_;
};

}  // namespace sluice::resp
