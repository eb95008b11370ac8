// What can be done to the counters that a request matches, beside checking them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::limiter {

/// What is to be done; docs/semantics.md section 5 says what each means.
struct CounterVerb {
  enum class Kind : std::uint8_t { refund, settle, penalize, reset, ban, release };
  Kind kind = Kind::reset;
  std::uint64_t reserved = 0;  ///< settle: was charged; 0 … kMaxTokens
  std::uint64_t actual = 0;    ///< settle: should have been
  /// refund, settle: a time in ns since 1970 UTC at which the charge had been made, when it is known.
  std::optional<std::int64_t> at = std::nullopt;
  /// settle: what was reserved; only if it has not ended or timed out before; it ends with it.
  struct Reservation {
    std::uint64_t lease = 0;      ///< 0: none could be taken
    std::uint8_t life = 0;        ///< see reservation_limit
    std::int64_t expires_at = 0;  ///< ns since 1970 UTC
    std::string_view place;       ///< key of the lease. Need not live on
  };
  std::optional<Reservation> reservation = std::nullopt;
  std::chrono::microseconds time{0};  ///< ban: for how long, 0 … store::kLongestBan; 0: it ends
  /// release: the lease of each descriptor, and the request's costs are what they weigh. Need not live on.
  std::span<const std::uint64_t> leases{};  // NOLINT(readability-redundant-member-init): gcc warns without it
  /// release, and settle of a reservation: what each descriptor's part was taken from (see counter_mark); nothing is
  /// done to another counter. Need not live on.
  std::span<const std::uint32_t> marks{};  // NOLINT(readability-redundant-member-init): as above
};

}  // namespace sluice::limiter
