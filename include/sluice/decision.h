// The answer to a charge, or to all charges of one request taken together.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "sluice/wait.h"

namespace sluice {

/// Fixed windows: the charge that took the last token, and every denial. Any limit: its key is banned for a time.
enum class Mark : std::uint8_t { none, quota_hit, over_quota, banned };

/// Who answered.
enum class Source : std::uint8_t { memory, redis, fallback_local, fallback_allow, fallback_deny };

/// One decision. Allowed: the figures tell the state after the charge and `retry_after` is 0. Denied: they tell the
/// state as it is. A cost that can never fit has `retry_after` = never. A value; trivially copyable.
struct Decision {
  bool allowed = true;             ///< may the caller go on?
  Mark mark = Mark::none;          ///< fixed windows: the last token, or beyond it; or a ban
  Source source = Source::memory;  ///< who answered; in a library's limiter always memory
  std::uint32_t which = 0;         ///< index of the charge that the figures are of
  std::uint64_t limit = 0;         ///< most tokens that can be had at once
  std::uint64_t remaining = 0;     ///< tokens that can be had now; a debt shows as 0
  // NOLINTBEGIN(readability-redundant-member-init): without it, gcc warns of designated initializers that leave it out
  Wait retry_after{};  ///< first time at which the same cost would fit, if nothing else came
  Wait reset_after{};  ///< time until the state equals a fresh one
  Wait delay{
      // NOLINTEND(readability-redundant-member-init)
  };  ///< leaky bucket: when to act; 0 for all others
  friend bool operator==(const Decision&, const Decision&) = default;
};

/// As text, for logs and tests.
template <typename Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, Mark mark) {
  switch (mark) {
    case Mark::none:
      out << "none";
      break;
    case Mark::quota_hit:
      out << "quota_hit";
      break;
    case Mark::over_quota:
      out << "over_quota";
      break;
    case Mark::banned:
      out << "banned";
      break;
  }
  return out;
}

/// As text, for logs and tests: "denied, retry_after 100 ms, remaining 0 of 30, reset_after 3 s", and `delay` and
/// `mark` where there are any.
template <typename Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, const Decision& decision) {
  if (decision.allowed) {
    out << "allowed";
  } else {
    out << "denied, retry_after " << decision.retry_after;
  }
  out << ", remaining " << decision.remaining << " of " << decision.limit << ", reset_after " << decision.reset_after;
  if (decision.delay != Wait()) out << ", delay " << decision.delay;
  if (decision.mark != Mark::none) out << ", mark " << decision.mark;
  return out;
}

}  // namespace sluice
