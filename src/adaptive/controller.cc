#include "adaptive/controller.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <variant>

#include "adaptive/numbers.h"
#include "algorithm/int128.h"

namespace sluice::adaptive {

namespace {

using algorithm::Uint128;

constexpr std::uint64_t kWhole = 1'000;  // per mille

// A probe is bounded in time by this many times what it would take at the latency seen last, or of windows: if a call
// hangs it must not keep all others out.
constexpr std::int64_t kPatience = 4;
// A probe measures this many times as many calls as it lets be in flight: those that have not ended at its end, mostly
// long ones, are then too few to matter. And it measures more exactly than a window, as it has to last.
constexpr std::uint64_t kRounds = 10;
constexpr std::uint64_t kExactly = 5;
// After a probe that moved the reference by more than a quarter, the next comes after 1/8 of the time.
constexpr std::int64_t kMuch = 4;
constexpr std::uint64_t kSooner = 8;

std::uint64_t mixed(std::uint64_t x) {  // a splitmix64 step: all bits of x matter to all of the result
  x += 0x9e37'79b9'7f4a'7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58'476d'1ce4'e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d0'49bb'1331'11ebU;
  return x ^ (x >> 31U);
}

std::uint64_t whole_root(std::uint64_t x) {  // of numbers below 2^20
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 10U; bit != 0; bit >>= 1U) {
    if ((root + bit) * (root + bit) <= x) root += bit;
  }
  return root;
}

std::int64_t mean(const Window& seen) {
  const std::uint64_t successes = seen.ended - seen.dropped;
  return successes == 0 ? 0 : static_cast<std::int64_t>(seen.sum / successes);
}

bool too_many_drops(const Window& seen, std::uint64_t tolerated_permille) {
  return seen.dropped * kWhole > tolerated_permille * seen.ended;
}

}  // namespace

Controller::Controller(const AdaptiveConcurrency::Numbers& numbers)
    : numbers_(numbers), limit_(fine(initial_limit(numbers))) {}

std::uint64_t Controller::limit() const { return phase_ == Phase::normal ? calls(limit_) : probe_limit_; }

std::int64_t Controller::counts_from() const {
  switch (phase_) {
    case Phase::draining:
      return INT64_MAX;
    case Phase::measuring:
      return measures_from_;
    case Phase::normal:
      break;
  }
  return INT64_MIN;
}

std::uint64_t Controller::needed() const {
  switch (phase_) {
    case Phase::draining:
      return 0;
    case Phase::measuring:
      return probe_samples();
    case Phase::normal:
      break;
  }
  return numbers_.samples;
}

std::int64_t Controller::slowest() const {
  const Aimd* aimd = std::get_if<Aimd>(&numbers_.method);
  return aimd != nullptr ? aimd->timeout.count() : kLongestCall;
}

std::uint64_t Controller::clamped(std::uint64_t fine_limit) const {
  return std::clamp(fine_limit, fine(numbers_.min), fine(numbers_.max));
}

// At most half of what the tolerated latency lets be in flight, so that a reference measured under load, which counts
// some queueing as normal, is at most half as wrong the next time.
std::uint64_t Controller::probe_limit(const Gradient& gradient) const {
  const std::uint64_t half = calls(limit_) * kWhole / (std::uint64_t{2} * gradient.tolerance_permille);
  return std::max(half, numbers_.min);
}

std::uint64_t Controller::probe_samples() const {
  return std::max(kExactly * numbers_.samples, kRounds * probe_limit_);
}

void Controller::close(const Window& seen, std::int64_t now) {
  const Gradient* gradient = std::get_if<Gradient>(&numbers_.method);
  if (phase_ == Phase::draining) {
    begin_measuring(now);
    return;
  }
  const bool overloaded = too_many_drops(seen, numbers_.tolerated_drops_permille);
  if (overloaded) {
    limit_ = clamped(limit_ * numbers_.backoff_permille / kWhole);
  }
  const std::int64_t rtt = mean(seen);
  if (phase_ == Phase::measuring) {
    measured(*gradient, overloaded ? 0 : rtt);
    begin_window(now);
    return;
  }
  if (rtt != 0) short_ = rtt;
  const bool used = 2 * seen.peak >= calls(limit_);
  if (gradient == nullptr) {
    if (!overloaded && used) limit_ = clamped(limit_ + fine(std::get<Aimd>(numbers_.method).increase));
    begin_window(now);
    return;
  }
  if (long_ == 0) long_ = rtt;
  if (!overloaded && used) move_by_gradient(*gradient, seen);
  if (until_probe_ != 0) --until_probe_;
  // A limit that has fallen this far without an end may go by a reference of other times.
  if (limit_ <= limit_at_probe_ / 2) until_probe_ = 0;
  if (until_probe_ != 0 || rtt == 0 || overloaded) {
    begin_window(now);
  } else if (seen.peak <= probe_limit(*gradient)) {
    measured(*gradient, rtt);  // so little was in flight that it was as good as a probe
    begin_window(now);
  } else {
    begin_draining(*gradient, now);
  }
}

// L + σ·(L·g + queue − L), where g = tolerance·long/short within 1/2 … 1.
void Controller::move_by_gradient(const Gradient& gradient, const Window& seen) {
  const std::int64_t rtt = mean(seen);
  const Uint128 present = Uint128{static_cast<std::uint64_t>(rtt)} * kWhole;
  const Uint128 tolerated = Uint128{static_cast<std::uint64_t>(long_)} * gradient.tolerance_permille;
  std::uint64_t aim = limit_;
  if (tolerated < present) {
    aim = 2 * tolerated <= present ? limit_ / 2 : static_cast<std::uint64_t>(limit_ * tolerated / present);
  }
  aim += fine(std::max<std::uint64_t>(gradient.queue, whole_root(calls(limit_))));
  const std::uint64_t difference = aim > limit_ ? aim - limit_ : limit_ - aim;
  const std::uint64_t step = difference * gradient.smoothing_permille / kWhole;
  limit_ = clamped(aim > limit_ ? limit_ + step : limit_ - step);
}

// A latency of 0 (calls shorter than a step of the clock) tells nothing. A rise counts at most twofold, as a probe may
// fall into a time of overload; what is too low is made good by the next ones.
void Controller::measured(const Gradient& gradient, std::int64_t rtt) {
  bool much = false;
  if (rtt != 0) {
    const std::int64_t before = long_;
    long_ = std::min(rtt, 2 * before);
    much = kMuch * std::abs(long_ - before) > before;
  }
  const std::uint64_t every = much ? gradient.probe_every / kSooner + 1 : gradient.probe_every;
  const std::uint64_t jitter = mixed(gradient.seed ^ mixed(probes_++)) % (every / 2 + 1);
  until_probe_ = static_cast<std::uint32_t>(every - every / 4 + jitter);
  limit_at_probe_ = limit_;
}

void Controller::begin_window(std::int64_t now) {
  phase_ = Phase::normal;
  window_ = Span::around(now, numbers_.window.count());
}

void Controller::begin_draining(const Gradient& gradient, std::int64_t now) {
  probe_limit_ = probe_limit(gradient);
  phase_ = Phase::draining;
  window_ = {};
  patience_ = Span::around(now, std::max(numbers_.window.count(), kPatience * short_));
}

void Controller::begin_measuring(std::int64_t now) {
  phase_ = Phase::measuring;
  measures_from_ = now;
  const auto rounds = static_cast<std::int64_t>((probe_samples() - 1) / probe_limit_ + 1);
  patience_ = Span::around(now, kPatience * std::max(numbers_.window.count(), rounds * short_));
}

void Controller::give_up(std::int64_t now) {
  measured(std::get<Gradient>(numbers_.method), 0);
  begin_window(now);
}

void Controller::set_numbers(const AdaptiveConcurrency::Numbers& numbers, std::int64_t now) {
  if (numbers.method.index() != numbers_.method.index()) long_ = 0;
  numbers_ = numbers;
  limit_ = clamped(limit_);
  if (long_ == 0 || phase_ != Phase::normal) until_probe_ = 0;
  begin_window(now);
}

}  // namespace sluice::adaptive
