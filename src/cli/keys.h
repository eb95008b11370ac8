// sluice keys: looks at counters in Redis, and forgets them.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "cli/serve.h"

namespace sluice::cli {

struct KeysOptions {
  std::string action;                    ///< inspect or reset
  ServeOptions settings;                 ///< for the policy and the store
  std::string domain;                    ///< may be empty when the policy has one domain
  std::vector<std::string> descriptors;  ///< as of sluice check; they need a policy
  std::vector<std::string> keys;         ///< names as they are in Redis
  std::string pattern;                   ///< of names, as SCAN takes it; begins with the prefix
  std::uint64_t most = 1'000;            ///< keys of the pattern, 1 … kMostKeys
  bool json = false;                     ///< one object a line
  bool yes = false;                      ///< reset by a pattern without being asked
};

inline constexpr std::uint64_t kMostKeys = 1'000'000;

/// The answers on `out`, mistakes on `err`. `in` is asked before a pattern's keys are removed; `is_terminal`: somebody
/// is there to answer. Returns the exit code: 0, or 1 on any mistake and when nothing was removed because nobody
/// agreed.
[[nodiscard]] int keys(const KeysOptions& options, std::istream& in, bool is_terminal, std::ostream& out,
                       std::ostream& err);

}  // namespace sluice::cli
