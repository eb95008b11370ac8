// How an adaptive limit moves from window to window. Pure: no clock, no lock; the formulas of docs/adaptive.md.
#pragma once

#include <cstdint>

#include "sluice/adaptive_concurrency.h"
#include "sluice/internal/span.h"

namespace sluice::adaptive {

using internal::Span;

/// What was seen in one window.
struct Window {
  std::uint64_t ended = 0;    ///< successes and drops
  std::uint64_t dropped = 0;  ///< of these, drops
  std::uint64_t sum = 0;      ///< of the successes' latencies, in ns
  std::uint64_t peak = 0;     ///< most calls in flight
};

/// Longer calls count as of this length, so that no sum overflows.
inline constexpr std::int64_t kLongestCall = std::int64_t{1} << 40;

/// The limit and what it is reckoned from. Times are ns of the steady clock. Not thread-safe.
class Controller {
 public:
  /// normal → draining → measuring → normal: a probe cuts the limit, waits until no more calls than that are in flight,
  /// and measures calls that begin after that.
  enum class Phase : std::uint8_t { normal, draining, measuring };

  /// Precondition: the numbers are within their ranges (see numbers.h).
  explicit Controller(const AdaptiveConcurrency::Numbers& numbers);

  /// A window of `seen` is over, which ended at `now` and had at least needed() calls; or draining is.
  void close(const Window& seen, std::int64_t now);
  /// The probe has lasted too long.
  void give_up(std::int64_t now);
  void set_numbers(const AdaptiveConcurrency::Numbers& numbers, std::int64_t now);

  [[nodiscard]] Phase phase() const { return phase_; }
  /// How many calls may be in flight: min … max, and in a probe less than at other times.
  [[nodiscard]] std::uint64_t limit() const;
  [[nodiscard]] std::int64_t short_rtt() const { return short_; }
  [[nodiscard]] std::int64_t long_rtt() const { return long_; }
  /// Calls that started earlier don't count in this window; INT64_MAX: none counts.
  [[nodiscard]] std::int64_t counts_from() const;
  /// The window is not over while this holds …
  [[nodiscard]] Span window() const { return window_; }
  /// … and before this many calls, and twice as many as were in flight, have ended. 0: it needs none.
  [[nodiscard]] std::uint64_t needed() const;
  /// A probe is to be given up when this doesn't hold any more.
  [[nodiscard]] Span patience() const { return patience_; }
  /// A success slower than this counts as dropped.
  [[nodiscard]] std::int64_t slowest() const;
  [[nodiscard]] const AdaptiveConcurrency::Numbers& numbers() const { return numbers_; }

 private:
  // Limits are kept in 2^-20 of a call, as steps are often smaller than one.
  static constexpr unsigned kFraction = 20;
  [[nodiscard]] static constexpr std::uint64_t calls(std::uint64_t fine) { return fine >> kFraction; }
  [[nodiscard]] static constexpr std::uint64_t fine(std::uint64_t calls) { return calls << kFraction; }

  [[nodiscard]] std::uint64_t clamped(std::uint64_t fine_limit) const;
  [[nodiscard]] std::uint64_t probe_limit(const Gradient& gradient) const;
  [[nodiscard]] std::uint64_t probe_samples() const;
  void move_by_gradient(const Gradient& gradient, const Window& seen);
  void measured(const Gradient& gradient, std::int64_t rtt);
  void begin_window(std::int64_t now);
  void begin_draining(const Gradient& gradient, std::int64_t now);
  void begin_measuring(std::int64_t now);

  AdaptiveConcurrency::Numbers numbers_;
  std::uint64_t limit_;  // in 2^-20 of a call
  std::int64_t short_ = 0;
  std::int64_t long_ = 0;
  Phase phase_ = Phase::normal;
  std::uint64_t probe_limit_ = 0;     // while probing
  std::uint32_t until_probe_ = 0;     // windows
  std::uint64_t limit_at_probe_ = 0;  // limit_ after the last one
  std::uint64_t probes_ = 0;          // so far
  std::int64_t measures_from_ = 0;    // when measuring
  Span window_;
  Span patience_;
};

}  // namespace sluice::adaptive
