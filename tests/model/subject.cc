#include "tests/model/subject.h"

#include <stdexcept>
#include <utility>

#include "algorithm/calendar.h"
#include "algorithm/compiled_limit.h"
#include "algorithm/concurrency.h"
#include "algorithm/sliding_log.h"
#include "algorithm/sliding_window.h"

namespace sluice::model {

namespace {

using algorithm::CompiledLimit;
using algorithm::Tick;
using algorithm::Verdict;
using algorithm::View;

CompiledLimit compiled(const Limit& limit, Tick tick) {
  auto result = CompiledLimit::compile(limit, tick, &algorithm::open_calendar);
  if (!result) throw std::invalid_argument(result.error().message);
  return *std::move(result);
}

// The algorithms whose state has a fixed size.
class CompiledSubject final : public Subject {
 public:
  CompiledSubject(const Limit& limit, Tick tick) : tick_(tick), compiled_(compiled(limit, tick)) {}

  Verdict judge(std::int64_t now, std::uint64_t cost) const override { return compiled_.judge(state_, now, cost); }
  void take(std::int64_t now, std::uint64_t cost) override { compiled_.take(state_, now, cost); }
  void count_denied(std::int64_t now, std::uint64_t cost) override { compiled_.count_denied(state_, now, cost); }
  View view(std::int64_t now) const override { return compiled_.view(state_, now); }
  void refund(std::int64_t now, std::uint64_t cost, std::optional<std::int64_t> at) override {
    compiled_.refund(state_, now, cost, at);
  }
  void settle(std::int64_t now, std::uint64_t reserved, std::uint64_t actual, std::optional<std::int64_t> at) override {
    compiled_.settle(state_, now, reserved, actual, at);
  }
  void penalize(std::int64_t now, std::uint64_t cost) override { compiled_.penalize(state_, now, cost); }
  void set_limit(const Limit& limit, std::int64_t now) override {
    CompiledLimit next = compiled(limit, tick_);
    next.convert(state_, compiled_, now);
    compiled_ = std::move(next);
  }
  void reset() override { state_ = {}; }
  std::unique_ptr<Subject> clone() const override { return std::make_unique<CompiledSubject>(*this); }

 private:
  Tick tick_;
  CompiledLimit compiled_;
  CompiledLimit::State state_;
};

std::int64_t in_ticks(std::chrono::nanoseconds duration, Tick tick) { return duration.count() / nanoseconds_in(tick); }

// The algorithms whose state grows.
template <typename Numbers, typename State>
class GrowingSubject : public Subject {
 public:
  GrowingSubject(const Numbers& numbers, Tick tick) : tick_(tick), numbers_(numbers) {}

  Verdict judge(std::int64_t now, std::uint64_t cost) const override { return numbers_.judge(state_, now, cost); }
  void take(std::int64_t now, std::uint64_t cost) override { static_cast<void>(numbers_.take(state_, now, cost)); }
  View view(std::int64_t now) const override { return numbers_.view(state_, now); }
  void refund(std::int64_t now, std::uint64_t cost, std::optional<std::int64_t> at) override {
    numbers_.refund(state_, now, cost, at);
  }
  void settle(std::int64_t now, std::uint64_t reserved, std::uint64_t actual, std::optional<std::int64_t> at) override {
    numbers_.settle(state_, now, reserved, actual, at);
  }
  void penalize(std::int64_t now, std::uint64_t cost) override { numbers_.penalize(state_, now, cost); }
  void set_limit(const Limit& limit, std::int64_t now) override {
    const Numbers next = made(limit, tick_);
    next.convert(state_, numbers_, now);
    numbers_ = next;
  }
  void reset() override { state_ = {}; }
  std::unique_ptr<Subject> clone() const override { return std::make_unique<GrowingSubject>(*this); }

  static Numbers made(const Limit& limit, Tick tick) {
    if constexpr (std::is_same_v<Numbers, algorithm::SlidingWindow>) {
      return Numbers(limit.rate, in_ticks(limit.period, tick), limit.slots);
    } else {
      return Numbers(limit.rate, in_ticks(limit.period, tick));
    }
  }

 private:
  Tick tick_;
  Numbers numbers_;
  State state_;
};

class ConcurrencySubject final : public Subject {
 public:
  ConcurrencySubject(const Limit& limit, Tick tick) : tick_(tick), numbers_(made(limit)) {}

  Verdict judge(std::int64_t now, std::uint64_t cost) const override { return numbers_.judge(state_, now, cost); }
  void take(std::int64_t now, std::uint64_t cost) override { static_cast<void>(numbers_.take(state_, now, cost)); }
  View view(std::int64_t now) const override { return numbers_.view(state_, now); }
  void refund(std::int64_t, std::uint64_t, std::optional<std::int64_t>) override { no_verb(); }
  void settle(std::int64_t, std::uint64_t, std::uint64_t, std::optional<std::int64_t>) override { no_verb(); }
  void penalize(std::int64_t, std::uint64_t) override { no_verb(); }
  bool release(std::int64_t now, std::uint64_t lease) override { return numbers_.release(state_, now, lease); }
  std::uint64_t next_lease() const override { return algorithm::Concurrency::next_lease(state_); }
  void set_limit(const Limit& limit, std::int64_t now) override {
    const algorithm::Concurrency next = made(limit);
    next.convert(state_, numbers_, now);
    numbers_ = next;
  }
  void reset() override { algorithm::Concurrency::reset(state_); }
  std::unique_ptr<Subject> clone() const override { return std::make_unique<ConcurrencySubject>(*this); }

 private:
  static void no_verb() { throw std::invalid_argument("not a verb of concurrency"); }
  algorithm::Concurrency made(const Limit& limit) const { return {limit.rate, in_ticks(limit.ttl, tick_)}; }

  Tick tick_;
  algorithm::Concurrency numbers_;
  algorithm::Concurrency::State state_;
};

template <typename Numbers, typename State>
std::unique_ptr<Subject> growing(const Limit& limit, Tick tick) {
  using Made = GrowingSubject<Numbers, State>;
  return std::make_unique<Made>(Made::made(limit, tick), tick);
}

}  // namespace

std::unique_ptr<Subject> make_subject(const Limit& limit, Tick tick) {
  using algorithm::SlidingLog;
  using algorithm::SlidingWindow;
  if (limit.algorithm == Algorithm::sliding_log) return growing<SlidingLog, SlidingLog::State>(limit, tick);
  if (limit.algorithm == Algorithm::concurrency) return std::make_unique<ConcurrencySubject>(limit, tick);
  if (limit.algorithm == Algorithm::sliding_window && limit.slots > 1) {
    return growing<SlidingWindow, SlidingWindow::SlottedState>(limit, tick);
  }
  return std::make_unique<CompiledSubject>(limit, tick);
}

}  // namespace sluice::model
