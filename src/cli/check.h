// sluice check: a decision made in this process on fresh state, for scripts and for trying a policy.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "sluice/clock.h"

namespace sluice::cli {

struct CheckOptions {
  std::vector<std::string> policy;  ///< files and directories, at least one
  std::string domain;               ///< may be empty when the policy has one domain
  /// Each is one descriptor: its entries as "key=value", separated by commas. A comma or backslash that belongs to a
  /// key or value has a backslash before it.
  std::vector<std::string> descriptors;
  std::uint64_t cost = 1;
  std::uint64_t repeat = 1;  ///< make so many decisions at one instant; 1 … kMostRepeats
  bool json = false;         ///< one JSON object a decision, as POST /v1/check answers, in place of sentences
};

inline constexpr std::uint64_t kMostRepeats = 1'000'000;

/// The decisions on `out`, mistakes on `err`, one line each. Returns the exit code: 0 allowed, 2 denied (the last one,
/// when there are several), 1 error.
[[nodiscard]] int check(const CheckOptions& options, std::ostream& out, std::ostream& err,
                        const Clock& clock = SystemClock());

}  // namespace sluice::cli
