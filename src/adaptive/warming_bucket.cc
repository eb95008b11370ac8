#include "sluice/internal/warming_bucket.h"

#include <algorithm>
#include <mutex>
#include <type_traits>
#include <utility>
#include <variant>

#include "adaptive/check.h"
#include "adaptive/ramp.h"
#include "algorithm/decision_of.h"
#include "algorithm/limit_check.h"
#include "sluice/limit.h"

namespace sluice::internal {

namespace {

using adaptive::Narrow;
using adaptive::Ramp;
using adaptive::Wide;
using algorithm::decision_of;

template <typename Word>
struct Pair {
  Ramp<Word> ramp;
  typename Ramp<Word>::State state{};
};
using Any = std::variant<Pair<Narrow>, Pair<Wide>>;

void require_valid(const WarmingBucket::Numbers& numbers) {
  adaptive::Check check(algorithm::validate(
      {.algorithm = Algorithm::token_bucket, .rate = numbers.rate, .period = numbers.period, .burst = numbers.burst}));
  check.duration("warm_up", kMaxPeriod, "366 days", numbers.warm_up);
  check.duration("cool_down", kMaxPeriod, "366 days", numbers.cool_down);
  check.range("cold_factor", 1, 1'000, numbers.cold_factor);
  check.finish();
}

Any made(const WarmingBucket::Numbers& numbers) {
  require_valid(numbers);
  if (Ramp<Narrow>::fits_narrow(numbers)) return Pair<Narrow>{Ramp<Narrow>(numbers)};
  return Pair<Wide>{Ramp<Wide>(numbers)};
}

}  // namespace

struct WarmingBucket::State {
  explicit State(const Numbers& of) : numbers(of), any(made(of)) {}

  // Calls function(ramp, state, present).
  template <typename Function>
  auto on(std::int64_t now, Function function) {
    const std::scoped_lock lock(mutex);
    return std::visit(
        [&](auto& pair) {
          auto present = pair.ramp.at(pair.state, now);
          return function(pair.ramp, pair.state, present);
        },
        any);
  }

  std::mutex mutex;
  Numbers numbers;
  Any any;
};

WarmingBucket::WarmingBucket(const Numbers& numbers) : state_(std::make_unique<State>(numbers)) {}
WarmingBucket::~WarmingBucket() = default;

// What could throw is Boost's division by 0, and no divisor is: neither a token, nor a rate that refills one.
// NOLINTBEGIN(bugprone-exception-escape)

Decision WarmingBucket::try_acquire(std::uint64_t cost, std::int64_t now) noexcept {
  return state_->on(now, [&](const auto& ramp, auto& state, auto& present) {
    const algorithm::Verdict verdict = ramp.judge(present, cost);
    if (verdict.fits) ramp.take(state, present, cost, 0);
    return decision_of(verdict, ramp.view(present));
  });
}

Decision WarmingBucket::peek(std::uint64_t cost, std::int64_t now) const noexcept {
  return state_->on(now, [&](const auto& ramp, auto state, auto& present) {
    const algorithm::Verdict verdict = ramp.judge(present, cost);
    if (verdict.fits) ramp.take(state, present, cost, 0);
    return decision_of(verdict, ramp.view(present));
  });
}

Granted WarmingBucket::acquire_up_to(std::uint64_t most, std::int64_t now) noexcept {
  return state_->on(now, [&](const auto& ramp, auto& state, auto& present) {
    const std::uint64_t cost = std::min(most, ramp.view(present).remaining);
    ramp.take(state, present, cost, 0);
    return Granted{cost, decision_of({}, ramp.view(present))};
  });
}

Decision WarmingBucket::refund(std::uint64_t cost, std::int64_t now) noexcept {
  return state_->on(now, [&](const auto& ramp, auto& state, auto& present) {
    ramp.refund(state, present, cost);
    return decision_of({}, ramp.view(present));
  });
}

Decision WarmingBucket::settle(std::uint64_t reserved, std::uint64_t actual, std::int64_t now) noexcept {
  return state_->on(now, [&](const auto& ramp, auto& state, auto& present) {
    if (actual <= reserved) {
      ramp.refund(state, present, reserved - actual);
    } else {
      ramp.take(state, present, actual - reserved, kMaxTokens);
    }
    return decision_of({}, ramp.view(present));
  });
}

Decision WarmingBucket::penalize(std::uint64_t cost, std::int64_t now) noexcept {
  return state_->on(now, [&](const auto& ramp, auto& state, auto& present) {
    ramp.take(state, present, cost, ramp.limit());
    return decision_of({}, ramp.view(present));
  });
}

Decision WarmingBucket::reset(std::int64_t now) noexcept {
  return state_->on(now, [&](const auto& ramp, auto& state, auto& present) {
    state = {};
    present = {};
    return decision_of({}, ramp.view(present));
  });
}

// NOLINTEND(bugprone-exception-escape)

Decision WarmingBucket::set_limit(const Numbers& numbers, std::int64_t now) {
  Any next = made(numbers);
  {
    const std::scoped_lock lock(state_->mutex);
    if (numbers != state_->numbers) {
      std::visit([&](auto& to, const auto& from) { to.state = to.ramp.converted(from.state, from.ramp, now); }, next,
                 state_->any);
      state_->numbers = numbers;
      state_->any = std::move(next);
    }
  }
  return peek(0, now);
}

}  // namespace sluice::internal
