// sluice check: one decision, made in this process on fresh state, for scripts and for trying a policy.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace sluice::cli {

struct CheckOptions {
  std::vector<std::string> policy;   ///< files and directories, at least one
  std::string domain;                ///< may be empty when the policy has one domain
  std::vector<std::string> entries;  ///< "key=value" each, in order: one descriptor
  std::uint64_t cost = 1;
  bool json = false;  ///< one JSON object in place of a sentence
};

/// The decision on `out`, mistakes on `err`, one line each. Returns the exit code: 0 allowed, 2 denied, 1 error.
[[nodiscard]] int check(const CheckOptions& options, std::ostream& out, std::ostream& err);

}  // namespace sluice::cli
