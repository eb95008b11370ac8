// docs/adaptive.md as a slow program, on rational numbers and a list of calls; shares nothing with src/adaptive.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "sluice/adaptive_concurrency.h"

namespace sluice::adaptive {

class Reference {
 public:
  using Number = boost::multiprecision::cpp_rational;

  explicit Reference(const AdaptiveConcurrency::Numbers& numbers) : numbers_(numbers), limit_(numbers.initial) {}

  // A call's number, or nothing when it is denied.
  std::optional<int> acquire(std::int64_t now) {
    if (in_flight() >= limit() && probe_limit_ && away(now, probed_, patience_)) {
      if (!measuring_since_ && in_flight() <= *probe_limit_) {
        measure(now);
      } else {
        probe_failed(now);
      }
    }
    if (in_flight() >= limit()) return std::nullopt;
    calls_[++last_call_] = now;
    return last_call_;
  }
  void ignore(int call) { calls_.erase(call); }
  void end(int call, std::int64_t now, bool dropped) {
    const std::uint64_t were_in_flight = in_flight();
    const std::int64_t began = calls_.at(call);
    calls_.erase(call);
    std::int64_t took = now < began ? 0 : now - began;
    if (took > kLongest) took = kLongest;
    if (const auto* aimd = std::get_if<Aimd>(&numbers_.method); aimd != nullptr && took > aimd->timeout.count()) {
      dropped = true;
    }
    const bool counts = !probe_limit_ || (measuring_since_ && began >= *measuring_since_);
    if (counts) {
      samples_.push_back({took, dropped});
      peak_ = std::max(peak_, were_in_flight);
    }
    if (probe_limit_ && !measuring_since_) {
      if (in_flight() <= *probe_limit_) {
        measure(now);
      } else if (away(now, probed_, patience_)) {
        probe_failed(now);
      }
      return;
    }
    const std::uint64_t wanted = probe_limit_ ? probe_samples() : numbers_.samples;
    if (samples_.size() >= wanted && samples_.size() >= 2 * peak_ &&
        (probe_limit_ || !opened_ || away(now, *opened_, numbers_.window.count()))) {
      window_over(now);
    } else if (probe_limit_ && away(now, probed_, patience_)) {
      probe_failed(now);
    }
  }
  void set_limit(const AdaptiveConcurrency::Numbers& numbers, std::int64_t now) {
    if (numbers == numbers_) return;
    if (numbers.method.index() != numbers_.method.index()) long_ = 0;
    if (long_ == 0 || probe_limit_) until_probe_ = 0;
    numbers_ = numbers;
    limit_ = bounded(limit_);
    begin(now);
  }
  void reset() {
    const auto calls = calls_;
    const int last = last_call_;
    *this = Reference(numbers_);
    calls_ = calls;
    last_call_ = last;
  }

  [[nodiscard]] std::uint64_t in_flight() const { return calls_.size(); }
  [[nodiscard]] std::uint64_t limit() const {
    return probe_limit_ ? *probe_limit_ : static_cast<std::uint64_t>(whole(limit_));
  }
  [[nodiscard]] std::int64_t short_rtt() const { return short_; }
  [[nodiscard]] std::int64_t long_rtt() const { return long_; }
  [[nodiscard]] bool probing() const { return probe_limit_.has_value(); }

 private:
  struct Sample {
    std::int64_t took;
    bool dropped;
  };
  static constexpr std::int64_t kLongest = std::int64_t{1} << 40;

  static std::int64_t whole(const Number& number) {
    return static_cast<std::int64_t>(numerator(number) / denominator(number));
  }
  // Limits are kept to 2^-20, rounded down.
  static Number kept(const Number& number) {
    const Number scaled = number * (1 << 20);
    return Number(numerator(scaled) / denominator(scaled)) / (1 << 20);
  }
  [[nodiscard]] Number bounded(const Number& limit) const {
    if (limit < numbers_.min) return Number(numbers_.min);
    if (limit > numbers_.max) return Number(numbers_.max);
    return limit;
  }
  // Has so much time passed since then, or was `now` never meant to be near it?
  static bool away(std::int64_t now, std::int64_t since, std::int64_t ns) {
    const boost::multiprecision::cpp_int passed = boost::multiprecision::cpp_int(now) - since;
    return passed >= ns || passed < -ns;
  }
  [[nodiscard]] std::uint64_t probe_samples() const {
    return std::max<std::uint64_t>(5 * numbers_.samples, 10 * *probe_limit_);
  }

  void begin(std::int64_t now) {
    opened_ = now;
    samples_.clear();
    peak_ = 0;
    probe_limit_.reset();
    measuring_since_.reset();
  }

  void measure(std::int64_t now) {
    measuring_since_ = now;
    const auto rounds = static_cast<std::int64_t>((probe_samples() + *probe_limit_ - 1) / *probe_limit_);
    probed_ = now;
    patience_ = 4 * std::max<std::int64_t>(numbers_.window.count(), rounds * short_);
  }
  void probe_failed(std::int64_t now) {
    plan(false);
    begin(now);
  }

  static std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x ^= x >> 30U;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 27U;
    x *= 0x94d049bb133111ebU;
    return x ^ x >> 31U;
  }
  void plan(bool soon) {
    const auto& gradient = std::get<Gradient>(numbers_.method);
    const std::uint64_t every = soon ? gradient.probe_every / 8 + 1 : gradient.probe_every;
    const std::uint64_t most = every / 2;
    until_probe_ = every - every / 4 + mix(gradient.seed ^ mix(plans_++)) % (most + 1);
    limit_when_planned_ = limit_;
  }
  void reference(std::int64_t rtt) {
    if (rtt == 0) return plan(false);
    const std::int64_t before = long_;
    long_ = rtt > 2 * before ? 2 * before : rtt;
    const Number change = Number(long_) / before;
    plan(change > Number(5, 4) || change < Number(3, 4));
  }

  void window_over(std::int64_t now) {
    std::uint64_t drops = 0;
    std::uint64_t good = 0;
    boost::multiprecision::cpp_int sum = 0;
    for (const Sample& sample : samples_) {
      if (sample.dropped) {
        ++drops;
      } else {
        ++good;
        sum += sample.took;
      }
    }
    const std::int64_t rtt = good == 0 ? 0 : static_cast<std::int64_t>(sum / good);
    const bool bad = Number(drops, samples_.size()) > Number(numbers_.tolerated_drops_permille, 1'000);
    const bool used = 2 * peak_ >= limit();
    const std::uint64_t peak = peak_;
    const bool probed = probe_limit_.has_value();
    if (bad) limit_ = bounded(kept(limit_ * Number(numbers_.backoff_permille, 1'000)));
    if (probed) {
      reference(bad ? 0 : rtt);
      return begin(now);
    }
    if (rtt != 0) short_ = rtt;
    begin(now);
    if (const auto* aimd = std::get_if<Aimd>(&numbers_.method)) {
      if (!bad && used) limit_ = bounded(limit_ + aimd->increase);
      return;
    }
    const auto& gradient = std::get<Gradient>(numbers_.method);
    const Number tolerance(gradient.tolerance_permille, 1'000);
    if (long_ == 0) long_ = rtt;
    if (!bad && used) {
      Number g = 1;
      if (rtt != 0) g = tolerance * long_ / rtt;
      if (g > 1) g = 1;
      if (g < Number(1, 2)) g = Number(1, 2);
      std::uint64_t queue = 0;
      while ((queue + 1) * (queue + 1) <= static_cast<std::uint64_t>(whole(limit_))) ++queue;
      if (queue < gradient.queue) queue = gradient.queue;
      const Number aim = kept(limit_ * g) + queue;
      const Number way = aim - limit_;
      const Number share(gradient.smoothing_permille, 1'000);
      limit_ = bounded(way >= 0 ? limit_ + kept(way * share) : limit_ - kept(-way * share));
    }
    if (until_probe_ > 0) --until_probe_;
    if (2 * limit_ <= kept(limit_when_planned_)) until_probe_ = 0;
    if (until_probe_ != 0 || rtt == 0 || bad) return;
    const std::uint64_t cut = std::max<std::uint64_t>(
        numbers_.min, static_cast<std::uint64_t>(whole(Number(whole(limit_)) / (2 * tolerance))));
    if (peak <= cut) return reference(rtt);
    probe_limit_ = cut;
    probed_ = now;
    patience_ = std::max<std::int64_t>(numbers_.window.count(), 4 * short_);
  }

  AdaptiveConcurrency::Numbers numbers_;
  Number limit_;
  std::map<int, std::int64_t> calls_;  // in flight: when they began
  int last_call_ = 0;
  std::vector<Sample> samples_;
  std::uint64_t peak_ = 0;
  std::optional<std::int64_t> opened_;
  std::int64_t short_ = 0;
  std::int64_t long_ = 0;
  std::uint64_t until_probe_ = 0;
  Number limit_when_planned_ = 0;
  std::uint64_t plans_ = 0;
  std::optional<std::uint64_t> probe_limit_;
  std::optional<std::int64_t> measuring_since_;
  std::int64_t probed_ = 0;  // when draining or measuring began
  std::int64_t patience_ = 0;
};

}  // namespace sluice::adaptive
