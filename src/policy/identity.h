// The name of a limit that its state goes by.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sluice/limit.h"

namespace sluice::policy {

/// One level of a limit's path in the policy. An empty value: any.
struct PathStep {
  std::string_view key;
  std::string_view value;
};

/// Longest identity; what is longer ends in a digest of the whole.
inline constexpr std::size_t kMaxIdentityBytes = 160;

/// `domain/key=value/key;tb`: domain, path and the kind of state, as printable text without spaces, braces or '|'.
/// Different for any two limits of a policy; unchanged when only numbers change. The algorithm is part of it, as the
/// state of one means nothing to another.
[[nodiscard]] std::string make_identity(std::string_view domain, std::span<const PathStep> path, Algorithm algorithm);

/// The identity of limits that requests of a domain bring themselves: `domain//unit`. No limit of a policy has it, as
/// keys are never empty.
[[nodiscard]] std::string make_override_identity(std::string_view domain, std::string_view unit);

}  // namespace sluice::policy
