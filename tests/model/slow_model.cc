#include "tests/model/slow_model.h"

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <map>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "algorithm/calendar.h"
#include "algorithm/int128.h"
#include "algorithm/window.h"

namespace sluice::model {

namespace {

using algorithm::kNever;
using algorithm::kNeverSeen;
using algorithm::Tick;
using algorithm::Verdict;
using algorithm::View;
using Big = algorithm::Int128;

Big ceil_div(Big a, Big b) { return a / b + (a % b > 0 ? 1 : 0); }
Big floor_div(Big a, Big b) { return a / b - (a % b < 0 ? 1 : 0); }

// One limit on one key, by what each algorithm defines. `now` is clamped before these are called.
class Slow : public Subject {
 public:
  Slow(const Limit& limit, Tick tick) : tick_(tick) { configure(limit); }

  Verdict judge(std::int64_t at, std::uint64_t cost) const override {
    const std::int64_t now = clamp(at);
    Verdict verdict;
    if (cost > most()) {
      verdict.fits = false;
      verdict.retry_after = kNever;
    } else if (cost > 0) {
      const Big until = wait(static_cast<Big>(cost), now);
      verdict.fits = until == 0;
      verdict.retry_after = shown(until);
    }
    add_own(verdict, now, static_cast<Big>(cost));
    return verdict;
  }
  void take(std::int64_t at, std::uint64_t cost) override {
    if (cost > 0) put(static_cast<Big>(cost), clamp(at));
  }
  View view(std::int64_t at) const override {
    const std::int64_t now = clamp(at);
    const Big left = std::max<Big>(0, whole_free(now));
    return {most(), static_cast<std::uint64_t>(left), shown(until_initial(now))};
  }
  void refund(std::int64_t at, std::uint64_t cost, std::optional<std::int64_t> charged) override {
    const std::int64_t now = clamp(at);
    if (cost > 0 && !(charged && lapsed(*charged, now))) give(static_cast<Big>(cost), now);
  }
  void settle(std::int64_t at, std::uint64_t reserved, std::uint64_t actual,
              std::optional<std::int64_t> charged) override {
    if (actual <= reserved) {
      refund(at, reserved - actual, charged);
    } else {
      force(static_cast<Big>(actual - reserved), clamp(at), kMaxTokens);
    }
  }
  void penalize(std::int64_t at, std::uint64_t cost) override { force(static_cast<Big>(cost), clamp(at), most()); }
  void set_limit(const Limit& limit, std::int64_t at) override {
    if (last_ == kNeverSeen) {
      configure(limit);
    } else if (limit != limit_) {
      convert(limit, clamp(at));
    }
  }
  void reset() override {
    last_ = kNeverSeen;
    forget();
  }

 protected:
  static constexpr Big kNoWait = -1;  // never

  virtual void configure(const Limit& limit) {
    limit_ = limit;
    rate_ = static_cast<Big>(limit.rate);
    period_ = limit.period.count() / nanoseconds_in(tick_);
  }
  virtual void forget() {}
  [[nodiscard]] virtual std::uint64_t most() const { return limit_.rate; }
  [[nodiscard]] virtual Big whole_free(std::int64_t now) const = 0;
  [[nodiscard]] virtual Big wait(Big cost, std::int64_t now) const = 0;
  [[nodiscard]] virtual Big until_initial(std::int64_t now) const = 0;
  virtual void put(Big cost, std::int64_t now) = 0;
  virtual void give(Big cost, std::int64_t now) = 0;
  [[nodiscard]] virtual bool lapsed(std::int64_t /*charged*/, std::int64_t /*now*/) const { return false; }
  virtual void add_own(Verdict& /*verdict*/, std::int64_t /*now*/, Big /*cost*/) const {}
  virtual void force(Big cost, std::int64_t now, std::uint64_t room) {
    const Big fits = std::min(cost, std::max<Big>(0, whole_free(now) + static_cast<Big>(room)));
    if (fits > 0) put(fits, now);
  }
  virtual void convert(const Limit& limit, std::int64_t /*now*/) { configure(limit); }

  [[nodiscard]] std::int64_t clamp(std::int64_t now) const { return std::max(now, last_); }
  [[nodiscard]] std::int64_t shown(Big wait) const {
    return wait == kNoWait ? kNever : static_cast<std::int64_t>(std::min<Big>(wait, longest_wait(tick_)));
  }

  Tick tick_;
  Limit limit_;
  Big rate_ = 0;
  Big period_ = 1;
  std::int64_t last_ = kNeverSeen;
};

// Tokens are counted in 1/period of one, so that a tick refills `rate_` of them.
class SlowBucket : public Slow {
 public:
  SlowBucket(const Limit& limit, Tick tick) : Slow(limit, tick) { burst_ = capacity(limit_); }
  std::unique_ptr<Subject> clone() const override { return std::make_unique<SlowBucket>(*this); }

 protected:
  void configure(const Limit& limit) override {
    Slow::configure(limit);
    burst_ = capacity(limit);
  }
  [[nodiscard]] static Big capacity(const Limit& limit) {
    return static_cast<Big>(limit.algorithm == Algorithm::leaky_bucket ? limit.queue + 1 : limit.burst);
  }
  [[nodiscard]] std::uint64_t most() const override { return static_cast<std::uint64_t>(burst_); }
  [[nodiscard]] Big level(std::int64_t now) const {
    const Big full = burst_ * period_;
    return last_ == kNeverSeen ? full : std::min(full, level_ + (static_cast<Big>(now) - last_) * rate_);
  }
  [[nodiscard]] Big until(Big target, std::int64_t now) const {
    const Big need = target - level(now);
    return need <= 0 ? 0 : rate_ == 0 ? kNoWait : ceil_div(need, rate_);
  }
  [[nodiscard]] Big whole_free(std::int64_t now) const override { return floor_div(level(now), period_); }
  [[nodiscard]] Big wait(Big cost, std::int64_t now) const override { return until(cost * period_, now); }
  [[nodiscard]] Big until_initial(std::int64_t now) const override { return until(burst_ * period_, now); }
  void set(Big level, std::int64_t now) {
    level_ = level;
    last_ = now;
  }
  void put(Big cost, std::int64_t now) override { set(level(now) - cost * period_, now); }
  void force(Big cost, std::int64_t now, std::uint64_t room) override {
    const Big before = level(now);
    const Big after = std::max(before - cost * period_, std::min(before, -static_cast<Big>(room) * period_));
    if (after != before) set(after, now);
  }
  void give(Big cost, std::int64_t now) override {
    const Big full = burst_ * period_;
    if (level(now) < full) set(std::min(full, level(now) + cost * period_), now);
  }
  void convert(const Limit& limit, std::int64_t now) override {
    namespace mp = boost::multiprecision;
    const Big before = level(now);
    const Big old_period = period_;
    const bool full = before == burst_ * period_;
    configure(limit);
    // Rounded down to 1/p of a token, p being the period in lowest terms with the rate.
    const mp::cpp_int p(static_cast<std::int64_t>(period_ / std::gcd(limit.rate, static_cast<std::uint64_t>(period_))));
    const mp::cpp_int scaled = mp::cpp_int(before) * p;
    mp::cpp_int whole = scaled / old_period;
    if (whole * old_period > scaled) --whole;
    const Big converted = static_cast<Big>(whole) * (period_ / static_cast<Big>(static_cast<std::int64_t>(p)));
    const Big top = burst_ * period_;
    set(full ? top : std::min(top, converted), now);
  }

  Big burst_ = 1;
  Big level_ = 0;
};

class SlowLeakyBucket final : public SlowBucket {
 public:
  using SlowBucket::SlowBucket;
  std::unique_ptr<Subject> clone() const override { return std::make_unique<SlowLeakyBucket>(*this); }

 private:
  void add_own(Verdict& verdict, std::int64_t now, Big /*cost*/) const override {
    if (verdict.fits) verdict.delay = shown(until_initial(now));
  }
  void give(Big /*cost*/, std::int64_t /*now*/) override {}
  void convert(const Limit& limit, std::int64_t now) override {
    const Big backlog = shown(until_initial(now));
    configure(limit);
    set(burst_ * period_ - backlog * rate_, now);
  }
};

class SlowFixedWindow final : public Slow {
 public:
  SlowFixedWindow(const Limit& limit, Tick tick) : Slow(limit, tick) { open(); }
  std::unique_ptr<Subject> clone() const override { return std::make_unique<SlowFixedWindow>(*this); }
  void count_denied(std::int64_t at, std::uint64_t cost) override {
    if (limit_.count_denied) force(static_cast<Big>(cost), clamp(at), kMaxTokens);
  }

 private:
  struct Range {
    Big start = 0;
    Big end = 0;  // exclusive; an empty range: none is open
  };

  void open() {
    if (limit_.align != Align::calendar) return;
    auto windows = algorithm::open_calendar(limit_.calendar, tick_);
    if (!windows) throw std::invalid_argument(windows.error().message);
    calendar_ = *windows;
  }
  void forget() override { count_ = 0; }
  [[nodiscard]] Range range(std::int64_t now) const {
    if (limit_.align == Align::calendar) {
      const algorithm::Window window = calendar_->window(now);
      return {window.start, Big{window.start} + window.length};
    }
    if (limit_.align == Align::epoch) {
      const Big start = floor_div(now, period_) * period_;
      return {start, start + period_};
    }
    return last_ != kNeverSeen && now < start_ + period_ ? Range{start_, start_ + period_} : Range{now, now};
  }
  [[nodiscard]] Big used(std::int64_t now) const {
    const Range present = range(now);
    return last_ != kNeverSeen && present.end > present.start && present.start == start_ ? count_ : 0;
  }
  [[nodiscard]] Big whole_free(std::int64_t now) const override { return rate_ - used(now); }
  [[nodiscard]] Big until_initial(std::int64_t now) const override { return range(now).end - now; }
  [[nodiscard]] Big wait(Big cost, std::int64_t now) const override {
    return used(now) + cost <= rate_ ? 0 : until_initial(now);
  }
  void put(Big cost, std::int64_t now) override {
    count_ = used(now) + cost;
    start_ = range(now).start;
    last_ = now;
  }
  void give(Big cost, std::int64_t now) override {
    if (used(now) > 0) put(-std::min(cost, used(now)), now);
  }
  [[nodiscard]] bool lapsed(std::int64_t charged, std::int64_t now) const override {
    return range(now).end == now || charged < range(now).start;
  }
  void add_own(Verdict& verdict, std::int64_t now, Big cost) const override {
    if (!verdict.fits) {
      verdict.mark = Mark::over_quota;
    } else if (cost > 0 && used(now) + cost == rate_) {
      verdict.mark = Mark::quota_hit;
    }
  }
  void convert(const Limit& limit, std::int64_t /*now*/) override {
    const bool same = limit.period == limit_.period && limit.align == limit_.align && limit.calendar == limit_.calendar;
    configure(limit);
    open();
    if (!same) reset();
  }

  Big start_ = 0;
  Big count_ = 0;
  std::shared_ptr<const algorithm::CalendarWindows> calendar_;
};

class SlowSlidingLog final : public Slow {
 public:
  using Slow::Slow;
  std::unique_ptr<Subject> clone() const override { return std::make_unique<SlowSlidingLog>(*this); }

 private:
  struct Entry {
    std::int64_t at = 0;
    Big cost = 0;
  };
  void forget() override { log_.clear(); }
  [[nodiscard]] std::vector<Entry> live(std::int64_t now) const {
    std::vector<Entry> entries;
    for (const Entry& entry : log_) {
      if (now < entry.at + period_) entries.push_back(entry);
    }
    return entries;
  }
  [[nodiscard]] Big whole_free(std::int64_t now) const override {
    Big free = rate_;
    for (const Entry& entry : live(now)) free -= entry.cost;
    return free;
  }
  [[nodiscard]] Big until_initial(std::int64_t now) const override {
    Big longest = 0;
    for (const Entry& entry : live(now)) longest = std::max(longest, entry.at + period_ - now);
    return longest;
  }
  [[nodiscard]] Big wait(Big cost, std::int64_t now) const override {
    Big missing = cost - whole_free(now);
    Big until = 0;
    for (const Entry& entry : live(now)) {
      if (missing <= 0) break;
      missing -= entry.cost;
      until = entry.at + period_ - now;
    }
    return until;
  }
  void put(Big cost, std::int64_t now) override {
    log_ = live(now);
    log_.push_back({now, cost});
    last_ = now;
  }
  void give(Big cost, std::int64_t now) override {
    log_ = live(now);
    if (!log_.empty()) last_ = now;
    while (cost > 0 && !log_.empty()) {
      const Big back = std::min(cost, log_.back().cost);
      log_.back().cost -= back;
      cost -= back;
      if (log_.back().cost == 0) log_.pop_back();
    }
  }
  [[nodiscard]] bool lapsed(std::int64_t charged, std::int64_t now) const override { return charged + period_ <= now; }
  void convert(const Limit& limit, std::int64_t now) override {
    log_ = live(now);
    configure(limit);
  }

  std::vector<Entry> log_;
};

class SlowSlidingWindow final : public Slow {
 public:
  using Slow::Slow;
  std::unique_ptr<Subject> clone() const override { return std::make_unique<SlowSlidingWindow>(*this); }

 private:
  void forget() override { counts_.clear(); }
  [[nodiscard]] Big width() const { return period_ / limit_.slots; }
  [[nodiscard]] Big slot_of(std::int64_t now) const { return floor_div(now, width()); }
  [[nodiscard]] Big count(Big slot) const {
    const auto found = counts_.find(static_cast<std::int64_t>(slot));
    return found == counts_.end() ? 0 : found->second;
  }
  [[nodiscard]] Big whole(Big slot) const {
    Big sum = 0;
    for (Big k = 0; k < limit_.slots; ++k) sum += count(slot - k);
    return sum;
  }
  // The estimate times the width of a slot, at a moment in `slot`.
  [[nodiscard]] Big scaled(Big slot, Big moment) const {
    return whole(slot) * width() + count(slot - limit_.slots) * (width() - (moment - slot * width()));
  }
  [[nodiscard]] Big whole_free(std::int64_t now) const override {
    return floor_div(rate_ * width() - scaled(slot_of(now), now), width());
  }
  [[nodiscard]] Big until_initial(std::int64_t now) const override {
    Big newest = kNeverSeen;
    for (const auto& [slot, counted] : counts_) {
      if (counted > 0 && slot >= slot_of(now) - limit_.slots) newest = slot;
    }
    return newest == kNeverSeen ? 0 : (newest + 1) * width() + period_ - now;
  }
  // The estimate never rises by itself, so the first moment that fits is found by halving: first the slot, then the
  // moment in it.
  [[nodiscard]] Big wait(Big cost, std::int64_t now) const override {
    const auto fits = [&](Big slot, Big moment) { return scaled(slot, moment) + cost * width() <= rate_ * width(); };
    if (fits(slot_of(now), now)) return 0;
    Big slot = slot_of(now);
    while (!fits(slot, (slot + 1) * width() - 1)) ++slot;
    Big low = std::max<Big>(now, slot * width() - 1);  // does not fit, or lies before the slot
    Big high = (slot + 1) * width() - 1;               // fits
    while (high - low > 1) {
      const Big middle = low + (high - low) / 2;
      (fits(slot, middle) ? high : low) = middle;
    }
    return high - now;
  }
  void put(Big cost, std::int64_t now) override {
    std::erase_if(counts_, [&](const auto& entry) { return entry.first < slot_of(now) - limit_.slots; });
    counts_[static_cast<std::int64_t>(slot_of(now))] += cost;
    last_ = now;
  }
  void give(Big cost, std::int64_t now) override {
    for (auto entry = counts_.rbegin(); entry != counts_.rend(); ++entry) {
      if (entry->first > slot_of(now) || entry->first < slot_of(now) - limit_.slots) continue;
      const Big back = std::min(cost, entry->second);
      entry->second -= back;
      cost -= back;
      if (back > 0) last_ = now;
    }
  }
  [[nodiscard]] bool lapsed(std::int64_t charged, std::int64_t now) const override {
    return slot_of(now) - slot_of(charged) > limit_.slots;
  }
  void convert(const Limit& limit, std::int64_t /*now*/) override {
    const bool same = limit.period == limit_.period && limit.slots == limit_.slots;
    configure(limit);
    if (!same) reset();
  }

  std::map<std::int64_t, Big> counts_;
};

class SlowConcurrency final : public Slow {
 public:
  using Slow::Slow;
  std::unique_ptr<Subject> clone() const override { return std::make_unique<SlowConcurrency>(*this); }
  std::uint64_t next_lease() const override { return ids_ + 1; }
  bool release(std::int64_t at, std::uint64_t lease) override {
    const std::int64_t now = clamp(at);
    const auto found = leases_.find(lease);
    if (found == leases_.end() || found->second.end <= now) return false;
    leases_.erase(found);
    last_ = now;
    return true;
  }

 private:
  struct Lease {
    Big end = 0;
    Big cost = 0;
  };
  void forget() override { leases_.clear(); }
  [[nodiscard]] std::vector<Lease> live(std::int64_t now) const {  // by end
    std::vector<Lease> held;
    for (const auto& [id, lease] : leases_) {
      if (now < lease.end) held.push_back(lease);
    }
    std::ranges::sort(held, {}, &Lease::end);
    return held;
  }
  [[nodiscard]] Big whole_free(std::int64_t now) const override {
    Big free = rate_;
    for (const Lease& lease : live(now)) free -= lease.cost;
    return free;
  }
  [[nodiscard]] Big until_initial(std::int64_t now) const override {
    const auto held = live(now);
    return held.empty() ? 0 : held.back().end - now;
  }
  [[nodiscard]] Big wait(Big cost, std::int64_t now) const override {
    Big missing = cost - whole_free(now);
    Big until = 0;
    for (const Lease& lease : live(now)) {
      if (missing <= 0) break;
      missing -= lease.cost;
      until = lease.end - now;
    }
    return until;
  }
  void put(Big cost, std::int64_t now) override {
    leases_[++ids_] = {Big{now} + limit_.ttl.count() / nanoseconds_in(tick_), cost};
    last_ = now;
  }
  void give(Big /*cost*/, std::int64_t /*now*/) override { throw std::invalid_argument("leases are released"); }
  void force(Big /*cost*/, std::int64_t /*now*/, std::uint64_t /*room*/) override {
    throw std::invalid_argument("leases are acquired");
  }

  std::map<std::uint64_t, Lease> leases_;
  std::uint64_t ids_ = 0;
};

}  // namespace

std::unique_ptr<Subject> make_slow_subject(const Limit& limit, Tick tick) {
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
      return std::make_unique<SlowBucket>(limit, tick);
    case Algorithm::leaky_bucket:
      return std::make_unique<SlowLeakyBucket>(limit, tick);
    case Algorithm::fixed_window:
      return std::make_unique<SlowFixedWindow>(limit, tick);
    case Algorithm::sliding_window:
      return std::make_unique<SlowSlidingWindow>(limit, tick);
    case Algorithm::sliding_log:
      return std::make_unique<SlowSlidingLog>(limit, tick);
    case Algorithm::concurrency:
      return std::make_unique<SlowConcurrency>(limit, tick);
  }
  throw std::invalid_argument("unknown algorithm");
}

}  // namespace sluice::model
