// What a limit is: an algorithm with its numbers.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sluice {

/// The algorithms; docs/semantics.md section "Algorithms" says what each decides.
enum class Algorithm : std::uint8_t {
  token_bucket,
  leaky_bucket,
  fixed_window,
  sliding_window,
  sliding_log,
  concurrency
};

/// Where a fixed window begins. `epoch`: at multiples of the period since 1970 UTC. `first_hit`: with the first hit
/// counted. `calendar`: at local midnights (see Calendar).
enum class Align : std::uint8_t { epoch, first_hit, calendar };

/// A calendar window: the local day, week (from Monday), month (from `anchor_day`, or the month's last day where it is
/// shorter) or year that holds the present instant.
struct Calendar {
  /// How long a window is.
  enum class Unit : std::uint8_t { day, week, month, year };
  Unit unit = Unit::day;         ///< how long a window is
  std::string timezone = "UTC";  ///< an IANA name
  int anchor_day = 1;            ///< 1 … 31; month only
  friend bool operator==(const Calendar&, const Calendar&) = default;
};

/// The numbers of a limit. Only the fields its algorithm names matter.
/// Ranges: docs/semantics.md section "Numbers".
struct Limit {
  Algorithm algorithm = Algorithm::token_bucket;   ///< which fields below matter
  std::uint64_t rate = 0;                          ///< tokens per period: 0 … 10^12 (leaky bucket: from 1)
  std::chrono::nanoseconds period{1'000'000'000};  ///< whole µs, 1 µs … 366 days
  std::uint64_t burst = 1;                         ///< token bucket: 1 … 10^15
  std::uint64_t queue = 0;                         ///< leaky bucket: 0 … 10^15 − 1
  std::uint32_t slots = 1;                         ///< sliding window: 1 … 1000; period/slots in whole µs
  std::chrono::nanoseconds ttl{60'000'000'000};    ///< concurrency: like period
  Align align = Align::epoch;                      ///< fixed window
  Calendar calendar{};                             ///< fixed window with align = calendar
  bool count_denied = false;                       ///< fixed window: denied charges are added to the count
  friend bool operator==(const Limit&, const Limit&) = default;
};

/// Largest rate of a limit, in tokens per period.
inline constexpr std::uint64_t kMaxRate = 1'000'000'000'000;
/// Largest burst, cost and debt, in tokens.
inline constexpr std::uint64_t kMaxTokens = 1'000'000'000'000'000;
/// Longest period and ttl of a limit.
inline constexpr std::chrono::nanoseconds kMaxPeriod = std::chrono::hours(24) * 366;

/// What to do when the store that holds a limit's state fails.
enum class OnStoreFailure : std::uint8_t { local, allow, deny };

}  // namespace sluice
