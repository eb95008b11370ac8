#include "algorithm/compiled_limit.h"

#include <memory>
#include <utility>

namespace sluice::algorithm {

namespace {

// Windows that are aligned to something outside of the process.
bool goes_by_utc(const Limit& limit) {
  return limit.algorithm == Algorithm::sliding_window ||
         (limit.algorithm == Algorithm::fixed_window && limit.align != Align::first_hit);
}

// Does a refund know whether its charge still counts?
template <typename A>
inline constexpr bool kKnowsCharges = std::is_same_v<A, FixedWindow> || std::is_same_v<A, SlidingWindow> ||
                                      std::is_same_v<A, SlottedWindow> || std::is_same_v<A, SlidingLog>;

}  // namespace

CompiledLimit::CompiledLimit(Any algorithm, const Limit& limit, Tick tick) noexcept
    : algorithm_(std::move(algorithm)),
      tick_(tick),
      uses_utc_(goes_by_utc(limit)),
      counts_denied_(limit.algorithm == Algorithm::fixed_window && limit.count_denied) {}

Result<CompiledLimit> CompiledLimit::compile(const Limit& limit, Tick tick, CalendarOpener calendars) {
  if (const auto problems = validate(limit); !problems.empty()) return Error{joined(problems)};
  const std::int64_t period = limit.period.count() / nanoseconds_in(tick);
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
      return CompiledLimit(TokenBucket(limit.rate, period, limit.burst, tick), limit, tick);
    case Algorithm::leaky_bucket:
      return CompiledLimit(LeakyBucket(limit.rate, period, limit.queue, tick), limit, tick);
    case Algorithm::fixed_window: {
      FixedWindow::Numbers numbers{
          .rate = limit.rate, .period = period, .align = limit.align, .count_denied = limit.count_denied};
      if (limit.align == Align::calendar) {
        if (calendars == nullptr) return Error{"align: calendar windows are not available here"};
        auto opened = calendars(limit.calendar, tick);
        if (!opened) return opened.error();
        numbers.calendar = *std::move(opened);
      }
      return CompiledLimit(FixedWindow(std::move(numbers)), limit, tick);
    }
    case Algorithm::sliding_window:
      if (limit.slots > 1) return CompiledLimit(SlottedWindow(limit.rate, period, limit.slots), limit, tick);
      return CompiledLimit(SlidingWindow(limit.rate, period, limit.slots), limit, tick);
    case Algorithm::sliding_log:
      return CompiledLimit(SlidingLog(limit.rate, period), limit, tick);
    case Algorithm::concurrency:
      break;
  }
  return CompiledLimit(Concurrency(limit.rate, limit.ttl.count() / nanoseconds_in(tick)), limit, tick);
}

bool CompiledLimit::has_fixed_state() const noexcept {
  return on([]<typename A>(const A&) { return kIsFixed<typename A::State>; });
}

template <typename AnyState>
void CompiledLimit::refund(AnyState& state, std::int64_t now, std::uint64_t cost, std::optional<std::int64_t> at) const
    noexcept(kSafe<AnyState>) {
  on_state(state, [&]<typename A>(const A& algorithm, auto& own) {
    if constexpr (kKnowsCharges<A>) {
      algorithm.refund(own, now, cost, at);
    } else if constexpr (!std::is_same_v<A, Concurrency>) {
      algorithm.refund(own, now, cost);
    }
  });
}

template <typename AnyState>
void CompiledLimit::settle(AnyState& state, std::int64_t now, std::uint64_t reserved, std::uint64_t actual,
                           std::optional<std::int64_t> at) const noexcept(kSafe<AnyState>) {
  on_state(state, [&]<typename A>(const A& algorithm, auto& own) {
    if constexpr (kKnowsCharges<A>) {
      algorithm.settle(own, now, reserved, actual, at);
    } else if constexpr (!std::is_same_v<A, Concurrency>) {
      algorithm.settle(own, now, reserved, actual);
    }
  });
}

template <typename AnyState>
void CompiledLimit::penalize(AnyState& state, std::int64_t now, std::uint64_t cost) const noexcept(kSafe<AnyState>) {
  on_state(state, [&]<typename A>(const A& algorithm, auto& own) {
    if constexpr (!std::is_same_v<A, Concurrency>) algorithm.penalize(own, now, cost);
  });
}

template <typename AnyState>
void CompiledLimit::convert(AnyState& state, const CompiledLimit& old, std::int64_t now) const
    noexcept(kSafe<AnyState>) {
  constexpr bool is_cell = std::is_same_v<AnyState, Cell>;
  if (algorithm_.index() != old.algorithm_.index()) {
    if constexpr (is_cell) {
      old.clear(state);
    } else {
      state = {};
    }
    return;
  }
  on([&]<typename A>(const A& algorithm) {
    const A& before = *std::get_if<A>(&old.algorithm_);
    if constexpr (is_cell) {
      // It is read by the old numbers and written by the new ones.
      if (state.is_elsewhere()) {
        algorithm.convert(state.template elsewhere<typename A::State>(), before, now);
      } else if constexpr (kIsFixed<typename A::State>) {
        if (state.is_fresh()) return;
        auto own = unpack(before, state.word(), state.last());
        algorithm.convert(own, before, now);
        write_back(algorithm, state, own);
      }
    } else {
      on_plain(algorithm, state, [&](const A&, auto& own) { algorithm.convert(own, before, now); });
    }
  });
}

std::uint64_t CompiledLimit::take_lease(Cell& cell, std::int64_t now, std::uint64_t cost, std::uint64_t used) const {
  const auto& leases = *std::get_if<Concurrency>(&algorithm_);
  return on_cell(leases, cell, [&](const Concurrency&, Concurrency::State& own) {
    own.skip_ids(used);
    return leases.take(own, now, cost);
  });
}

bool CompiledLimit::release(Cell& cell, std::int64_t now, std::uint64_t lease) const {
  const auto& leases = *std::get_if<Concurrency>(&algorithm_);
  return on_cell(leases, cell,
                 [&](const Concurrency&, Concurrency::State& own) { return leases.release(own, now, lease); });
}

Cell CompiledLimit::copy_elsewhere(const Cell& cell) const {
  return on([&]<typename A>(const A&) {
    using Own = typename A::State;
    return Cell(std::make_unique<Own>(cell.elsewhere<Own>()));
  });
}

void CompiledLimit::free_elsewhere(const Cell& cell) const noexcept {
  on([&]<typename A>(const A&) { delete &cell.elsewhere<typename A::State>(); });
}

std::size_t CompiledLimit::memory_elsewhere(const Cell& cell) const noexcept {
  return on([&]<typename A>(const A&) {
    using Own = typename A::State;
    std::size_t beyond = 0;
    if constexpr (!kIsFixed<Own>) beyond = cell.elsewhere<Own>().memory();
    return allocated(sizeof(Own)) + allocated(beyond);
  });
}

// Each function, for both kinds of state.
template void CompiledLimit::refund(State&, std::int64_t, std::uint64_t, std::optional<std::int64_t>) const noexcept;
template void CompiledLimit::refund(Cell&, std::int64_t, std::uint64_t, std::optional<std::int64_t>) const;
template void CompiledLimit::settle(State&, std::int64_t, std::uint64_t, std::uint64_t,
                                    std::optional<std::int64_t>) const noexcept;
template void CompiledLimit::settle(Cell&, std::int64_t, std::uint64_t, std::uint64_t,
                                    std::optional<std::int64_t>) const;
template void CompiledLimit::penalize(State&, std::int64_t, std::uint64_t) const noexcept;
template void CompiledLimit::penalize(Cell&, std::int64_t, std::uint64_t) const;
template void CompiledLimit::convert(State&, const CompiledLimit&, std::int64_t) const noexcept;
template void CompiledLimit::convert(Cell&, const CompiledLimit&, std::int64_t) const;

}  // namespace sluice::algorithm
