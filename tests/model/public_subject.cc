#include "tests/model/public_subject.h"

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sluice/concurrency.h"
#include "sluice/fixed_window.h"
#include "sluice/keyed.h"
#include "sluice/leaky_bucket.h"
#include "sluice/sliding_log.h"
#include "sluice/sliding_window.h"
#include "sluice/token_bucket.h"
#include "tests/numbers_of.h"

namespace sluice::model {

namespace {

using algorithm::Verdict;
using algorithm::View;

Time both(std::int64_t now) { return {.steady = now, .utc = now}; }
std::optional<Time> both(std::optional<std::int64_t> at) { return at ? std::optional(both(*at)) : std::nullopt; }
std::int64_t ticks(Wait wait) { return wait.is_never() ? algorithm::kNever : wait.value().count(); }

// One key of a Keyed, called as the limiter for one key is. Others come and go beside it, so that the table grows and
// is cleaned, and its own key moves about.
template <typename Algorithm>
class OneKey {
 public:
  using Numbers = typename Algorithm::Numbers;
  explicit OneKey(const Numbers& numbers) : keyed_(numbers, {.max_keys = 50}) {}

  auto try_acquire(std::uint64_t cost, Time now) {
    static_cast<void>(keyed_.try_acquire(std::to_string(calls_++ % kOthers), 1, now));
    auto answer = keyed_.try_acquire(kKey, cost, now);
    if constexpr (std::is_same_v<Algorithm, Concurrency>) {
      if (answer.id() != 0) ids_.push_back(answer.id());
    }
    return answer;
  }
  [[nodiscard]] Decision peek(std::uint64_t cost, Time now) const { return keyed_.peek(kKey, cost, now); }
  template <typename... More>
  void refund(std::uint64_t cost, Time now, More... more) {
    keyed_.refund(kKey, cost, now, more...);
  }
  template <typename... More>
  void settle(std::uint64_t reserved, std::uint64_t actual, Time now, More... more) {
    keyed_.settle(kKey, reserved, actual, now, more...);
  }
  void penalize(std::uint64_t cost, Time now) { keyed_.penalize(kKey, cost, now); }
  // The models count the leases of a key.
  [[nodiscard]] bool release(std::uint64_t id, Time now) {
    const bool known = id >= 1 && id <= ids_.size();
    return keyed_.release(kKey, known ? ids_[id - 1] : UINT64_MAX - id, now);
  }
  void set_limit(const Numbers& numbers, Time now) {
    keyed_.set_limit(numbers, now);
    static_cast<void>(keyed_.try_acquire(kKey, 0, now));  // the first call by the new numbers
  }
  void reset(Time now) { keyed_.reset(kKey, now); }

 private:
  static constexpr std::string_view kKey = "a key of more than eleven bytes";
  static constexpr int kOthers = 40;
  Keyed<Algorithm> keyed_;
  std::vector<std::uint64_t> ids_;
  int calls_ = 0;
};

// Limiters cannot be copied, so a copy is made by doing again all that was done.
template <typename Algorithm, typename Limiter = Algorithm>
class PublicSubject final : public Subject {
 public:
  explicit PublicSubject(const Limit& limit)
      : limit_(limit), limiter_(std::make_unique<Limiter>(numbers_of<Algorithm>(limit))) {}

  [[nodiscard]] Verdict judge(std::int64_t now, std::uint64_t cost) const override {
    const Decision decision = limiter_->peek(cost, both(now));
    return {decision.allowed, decision.mark, ticks(decision.retry_after), ticks(decision.delay)};
  }
  void take(std::int64_t now, std::uint64_t cost) override {
    perform([=](Limiter& limiter) {
      if constexpr (std::is_same_v<Algorithm, Concurrency>) {
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
  [[nodiscard]] View view(std::int64_t now) const override {
    const Decision decision = limiter_->peek(0, both(now));
    return {decision.limit, decision.remaining, ticks(decision.reset_after)};
  }
  void refund(std::int64_t now, std::uint64_t cost, std::optional<std::int64_t> at) override {
    perform([=](Limiter& limiter) {
      if constexpr (std::is_same_v<Algorithm, TokenBucket>) limiter.refund(cost, both(now));
      if constexpr (kHasWindows) limiter.refund(cost, both(now), both(at));
    });
  }
  void settle(std::int64_t now, std::uint64_t reserved, std::uint64_t actual, std::optional<std::int64_t> at) override {
    perform([=](Limiter& limiter) {
      if constexpr (kHasWindows) {
        limiter.settle(reserved, actual, both(now), both(at));
      } else if constexpr (!std::is_same_v<Algorithm, Concurrency>) {
        limiter.settle(reserved, actual, both(now));
      }
    });
  }
  void penalize(std::int64_t now, std::uint64_t cost) override {
    perform([=](Limiter& limiter) {
      if constexpr (!std::is_same_v<Algorithm, Concurrency>) limiter.penalize(cost, both(now));
    });
  }
  bool release(std::int64_t now, std::uint64_t lease) override {
    bool released = false;
    if constexpr (std::is_same_v<Algorithm, Concurrency>) {
      released = limiter_->release(lease, both(now));
      done_.push_back([=](Limiter& limiter) { static_cast<void>(limiter.release(lease, both(now))); });
    }
    return released;
  }
  [[nodiscard]] std::uint64_t next_lease() const override { return leases_ + 1; }
  void set_limit(const Limit& limit, std::int64_t now) override {
    perform([=](Limiter& limiter) { limiter.set_limit(numbers_of<Algorithm>(limit), both(now)); });
  }
  void reset() override {
    perform([](Limiter& limiter) { limiter.reset(Time{}); });
  }
  [[nodiscard]] std::unique_ptr<Subject> clone() const override {
    auto copy = std::make_unique<PublicSubject>(limit_);
    for (const auto& function : done_) copy->perform(function);
    copy->leases_ = leases_;
    return copy;
  }

 private:
  static constexpr bool kHasWindows = std::is_same_v<Algorithm, FixedWindow> ||
                                      std::is_same_v<Algorithm, SlidingWindow> || std::is_same_v<Algorithm, SlidingLog>;
  using Function = std::function<void(Limiter&)>;

  static bool allowed(const Decision& decision) { return decision.allowed; }
  template <typename Lease>
  static bool allowed(const Lease& lease) {
    return lease.decision().allowed;
  }
  void perform(const Function& function) {
    function(*limiter_);
    done_.push_back(function);
  }

  Limit limit_;
  std::unique_ptr<Limiter> limiter_;
  std::vector<Function> done_;
  std::uint64_t leases_ = 0;
};

// What has the verbs of an algorithm: that limiter for one key, or one key of many.
template <typename Algorithm>
std::unique_ptr<Subject> subject_of(const Limit& limit, bool keyed) {
  if (keyed) return std::make_unique<PublicSubject<Algorithm, OneKey<Algorithm>>>(limit);
  return std::make_unique<PublicSubject<Algorithm>>(limit);
}

std::unique_ptr<Subject> make(const Limit& limit, algorithm::Tick tick, bool keyed) {
  if (tick != algorithm::Tick::nanosecond) throw std::invalid_argument("public limiters go by ns");
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
      return subject_of<TokenBucket>(limit, keyed);
    case Algorithm::leaky_bucket:
      return subject_of<LeakyBucket>(limit, keyed);
    case Algorithm::fixed_window:
      return subject_of<FixedWindow>(limit, keyed);
    case Algorithm::sliding_window:
      return subject_of<SlidingWindow>(limit, keyed);
    case Algorithm::sliding_log:
      return subject_of<SlidingLog>(limit, keyed);
    case Algorithm::concurrency:
      return subject_of<Concurrency>(limit, keyed);
  }
  throw std::invalid_argument("unknown algorithm");
}

}  // namespace

std::unique_ptr<Subject> make_public_subject(const Limit& limit, algorithm::Tick tick) {
  return make(limit, tick, false);
}
std::unique_ptr<Subject> make_keyed_subject(const Limit& limit, algorithm::Tick tick) {
  return make(limit, tick, true);
}

}  // namespace sluice::model
