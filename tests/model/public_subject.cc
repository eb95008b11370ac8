#include "tests/model/public_subject.h"

#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sluice/concurrency.h"
#include "sluice/fixed_window.h"
#include "sluice/leaky_bucket.h"
#include "sluice/sliding_log.h"
#include "sluice/sliding_window.h"
#include "sluice/token_bucket.h"

namespace sluice::model {

namespace {

using algorithm::Verdict;
using algorithm::View;

Time both(std::int64_t now) { return {.steady = now, .utc = now}; }
std::optional<Time> both(std::optional<std::int64_t> at) { return at ? std::optional(both(*at)) : std::nullopt; }
std::int64_t ticks(Wait wait) { return wait.is_never() ? algorithm::kNever : wait.value().count(); }

template <typename Limiter>
typename Limiter::Numbers numbers_of(const Limit& limit) {
  if constexpr (std::is_same_v<Limiter, TokenBucket>) return {limit.rate, limit.period, limit.burst};
  if constexpr (std::is_same_v<Limiter, LeakyBucket>) return {limit.rate, limit.period, limit.queue};
  if constexpr (std::is_same_v<Limiter, FixedWindow>) {
    return {limit.rate, limit.period, limit.align, limit.calendar, limit.count_denied};
  }
  if constexpr (std::is_same_v<Limiter, SlidingWindow>) return {limit.rate, limit.period, limit.slots};
  if constexpr (std::is_same_v<Limiter, SlidingLog>) return {limit.rate, limit.period};
  if constexpr (std::is_same_v<Limiter, Concurrency>) return {limit.rate, limit.ttl};
}

// Limiters cannot be copied, so a copy is made by doing again all that was done.
template <typename Limiter>
class PublicSubject final : public Subject {
 public:
  explicit PublicSubject(const Limit& limit)
      : limit_(limit), limiter_(std::make_unique<Limiter>(numbers_of<Limiter>(limit))) {}

  Verdict judge(std::int64_t now, std::uint64_t cost) const override {
    const Decision decision = limiter_->peek(cost, both(now));
    return {decision.allowed, decision.mark, ticks(decision.retry_after), ticks(decision.delay)};
  }
  void take(std::int64_t now, std::uint64_t cost) override {
    perform([=](Limiter& limiter) {
      if constexpr (std::is_same_v<Limiter, Concurrency>) {
        static_cast<void>(limiter.try_acquire(cost, both(now)).detach());
      } else {
        const Decision peeked = limiter.peek(cost, both(now));
        const Decision decision = limiter.try_acquire(cost, both(now));
        const bool same = peeked.allowed == decision.allowed && peeked.remaining == decision.remaining &&
                          peeked.reset_after == decision.reset_after && peeked.delay == decision.delay;
        if (!decision.allowed || !same) throw std::logic_error("a check is not what peek said");
      }
    });
    if (cost > 0) ++leases_;
  }
  void count_denied(std::int64_t now, std::uint64_t cost) override {
    perform([=](Limiter& limiter) {
      if (allowed(limiter.try_acquire(cost, both(now)))) {
        throw std::logic_error("a check is not what peek said");
      }
    });
  }
  View view(std::int64_t now) const override {
    const Decision decision = limiter_->peek(0, both(now));
    return {decision.limit, decision.remaining, ticks(decision.reset_after)};
  }
  void refund(std::int64_t now, std::uint64_t cost, std::optional<std::int64_t> at) override {
    perform([=](Limiter& limiter) {
      if constexpr (std::is_same_v<Limiter, TokenBucket>) limiter.refund(cost, both(now));
      if constexpr (kHasWindows) limiter.refund(cost, both(now), both(at));
    });
  }
  void settle(std::int64_t now, std::uint64_t reserved, std::uint64_t actual, std::optional<std::int64_t> at) override {
    perform([=](Limiter& limiter) {
      if constexpr (kHasWindows) {
        limiter.settle(reserved, actual, both(now), both(at));
      } else if constexpr (!std::is_same_v<Limiter, Concurrency>) {
        limiter.settle(reserved, actual, both(now));
      }
    });
  }
  void penalize(std::int64_t now, std::uint64_t cost) override {
    perform([=](Limiter& limiter) {
      if constexpr (!std::is_same_v<Limiter, Concurrency>) limiter.penalize(cost, both(now));
    });
  }
  bool release(std::int64_t now, std::uint64_t lease) override {
    bool released = false;
    if constexpr (std::is_same_v<Limiter, Concurrency>) {
      released = limiter_->release(lease, both(now));
      done_.push_back([=](Limiter& limiter) { static_cast<void>(limiter.release(lease, both(now))); });
    }
    return released;
  }
  std::uint64_t next_lease() const override { return leases_ + 1; }
  void set_limit(const Limit& limit, std::int64_t now) override {
    perform([=](Limiter& limiter) { limiter.set_limit(numbers_of<Limiter>(limit), both(now)); });
  }
  void reset() override {
    perform([](Limiter& limiter) { limiter.reset(Time{}); });
  }
  std::unique_ptr<Subject> clone() const override {
    auto copy = std::make_unique<PublicSubject>(limit_);
    for (const auto& function : done_) copy->perform(function);
    copy->leases_ = leases_;
    return copy;
  }

 private:
  static constexpr bool kHasWindows = std::is_same_v<Limiter, FixedWindow> || std::is_same_v<Limiter, SlidingWindow> ||
                                      std::is_same_v<Limiter, SlidingLog>;
  using Function = std::function<void(Limiter&)>;

  static bool allowed(const Decision& decision) { return decision.allowed; }
  static bool allowed(const Concurrency::Lease& lease) { return lease.decision().allowed; }
  void perform(const Function& function) {
    function(*limiter_);
    done_.push_back(function);
  }

  Limit limit_;
  std::unique_ptr<Limiter> limiter_;
  std::vector<Function> done_;
  std::uint64_t leases_ = 0;
};

}  // namespace

std::unique_ptr<Subject> make_public_subject(const Limit& limit, algorithm::Tick tick) {
  if (tick != algorithm::Tick::nanosecond) throw std::invalid_argument("public limiters go by ns");
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
      return std::make_unique<PublicSubject<TokenBucket>>(limit);
    case Algorithm::leaky_bucket:
      return std::make_unique<PublicSubject<LeakyBucket>>(limit);
    case Algorithm::fixed_window:
      return std::make_unique<PublicSubject<FixedWindow>>(limit);
    case Algorithm::sliding_window:
      return std::make_unique<PublicSubject<SlidingWindow>>(limit);
    case Algorithm::sliding_log:
      return std::make_unique<PublicSubject<SlidingLog>>(limit);
    case Algorithm::concurrency:
      return std::make_unique<PublicSubject<Concurrency>>(limit);
  }
  throw std::invalid_argument("unknown algorithm");
}

}  // namespace sluice::model
