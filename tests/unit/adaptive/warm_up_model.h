// docs/warm_up.md as a slow program on rational numbers; shares nothing with src/adaptive.
#pragma once

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <optional>

#include "sluice/limit.h"
#include "sluice/warm_up.h"

namespace sluice::adaptive {

class WarmUpModel {
 public:
  using Number = boost::multiprecision::cpp_rational;

  explicit WarmUpModel(const WarmUp::Numbers& numbers) : numbers_(numbers), tokens_(numbers.burst) {}

  // An older `now` is answered as the newest that changed something.
  [[nodiscard]] std::int64_t answered_as(std::int64_t now) const { return began_ ? std::max(now, last_) : now; }
  // Would it be allowed at `now`?
  [[nodiscard]] bool allows(std::uint64_t cost, std::int64_t now) const {
    return cost == 0 || (cost <= numbers_.burst && tokens(now) >= cost);
  }
  [[nodiscard]] bool fresh(std::int64_t now) const {
    if (!began_) return true;
    const std::int64_t full_at = std::max(now, last_) - numbers_.cool_down.count();
    return full_at >= last_ && uncapped(full_at) >= numbers_.burst;
  }
  [[nodiscard]] std::uint64_t remaining(std::int64_t now) const {
    const Number present = tokens(now);
    return present <= 0 ? 0 : static_cast<std::uint64_t>(numerator(present) / denominator(present));
  }

  // Takes without asking, until at most `room` tokens are owed.
  void take(std::uint64_t cost, std::uint64_t room, std::int64_t now) {
    const Number before = tokens(now);
    Number after = before - cost;
    if (after < -Number(room)) after = std::min(before, -Number(room));
    if (after == before) return;
    if (fresh(now)) {
      began_ = now;
      last_ = now;
    }
    last_ = std::max(last_, now);
    tokens_ = after;
  }
  void refund(std::uint64_t cost, std::int64_t now) {
    const Number before = tokens(now);
    if (before == numbers_.burst || cost == 0) return;
    last_ = std::max(last_, now);
    tokens_ = std::min(Number(numbers_.burst), Number(before + cost));
  }
  void reset() { *this = WarmUpModel(numbers_); }
  void set_limit(const WarmUp::Numbers& numbers, std::int64_t now) {
    if (same(numbers, numbers_)) return;
    if (fresh(now)) {
      *this = WarmUpModel(numbers);
      return;
    }
    now = std::max(now, last_);
    const Number before = tokens(now);
    const bool full = before == numbers_.burst;
    const auto done = std::min<std::int64_t>(now - *began_, numbers_.warm_up.count());
    const Number share = Number(done) * numbers.warm_up.count() / numbers_.warm_up.count();
    numbers_ = numbers;
    began_ = now - static_cast<std::int64_t>(numerator(share) / denominator(share));
    last_ = now;
    // Down to the grain of the new numbers: what a token is split into so that every refill is whole.
    const Number scaled = before * grain();
    boost::multiprecision::cpp_int whole = numerator(scaled) / denominator(scaled);
    if (whole > scaled) --whole;
    tokens_ = full ? Number(numbers.burst) : std::min(Number(numbers.burst), Number(whole) / grain());
  }

 private:
  static bool same(const WarmUp::Numbers& a, const WarmUp::Numbers& b) {
    return a.rate == b.rate && a.period == b.period && a.burst == b.burst && a.warm_up == b.warm_up &&
           a.cool_down == b.cool_down && a.cold_factor == b.cold_factor;
  }
  [[nodiscard]] Number grain() const {
    const Number per_tick(numbers_.rate, numbers_.period.count());
    return Number(2) * numbers_.warm_up.count() * numbers_.cold_factor * denominator(per_tick);
  }
  // Tokens a tick, `age` ticks after the first charge.
  [[nodiscard]] Number rate_at(std::int64_t age) const {
    const Number cold(1, numbers_.cold_factor);
    const Number warm(std::min<std::int64_t>(age, numbers_.warm_up.count()), numbers_.warm_up.count());
    return Number(numbers_.rate, numbers_.period.count()) * (cold + (1 - cold) * warm);
  }
  // The area under a line.
  [[nodiscard]] Number area(std::int64_t from, std::int64_t to) const {
    return (rate_at(from) + rate_at(to)) / 2 * (to - from);
  }
  // Tokens at `now`, not before the newest change, if the bucket were boundless since then.
  [[nodiscard]] Number uncapped(std::int64_t now) const {
    const std::int64_t from = last_ - *began_;
    const std::int64_t to = now - *began_;
    const std::int64_t knee = std::clamp(numbers_.warm_up.count(), from, to);
    return tokens_ + area(from, knee) + area(knee, to);
  }
  [[nodiscard]] Number tokens(std::int64_t now) const {
    if (fresh(now)) return numbers_.burst;
    return std::min(Number(numbers_.burst), uncapped(std::max(now, last_)));
  }

  WarmUp::Numbers numbers_;
  Number tokens_;
  std::int64_t last_ = INT64_MIN;
  std::optional<std::int64_t> began_;  // nothing: full and cold
};

}  // namespace sluice::adaptive
