#include "store/ban_store.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "store/limit_ids.h"

namespace sluice::store {
namespace {

// As much as comes back in a second, so that asking, which takes a token, never denies by itself.
constexpr std::uint64_t kPerSecond = 1'000'000;
// What a ban takes beside its time: the one token that asking takes is there again when it ends.
constexpr std::uint64_t kAllButOne = kPerSecond - 1;

// A ban is asked for a little longer than it lasts, as the store's own clock ends it.
constexpr std::int64_t kMargin = 1'000'000'000;

std::unique_ptr<CountedLimit> make_limit(std::string identity, bool goes_with_seconds) {
  auto made = std::make_unique<CountedLimit>();
  made->numbers.algorithm = Algorithm::token_bucket;
  made->numbers.rate = made->numbers.burst = kPerSecond;
  made->numbers.period = std::chrono::seconds(1);
  made->id = limit_id(identity);
  made->identity = std::move(identity);
  made->goes_with_seconds = goes_with_seconds;
  return made;
}

const CountedLimit& any_ban_limit(bool of_seconds) {
  static const std::unique_ptr<CountedLimit> kLimit = make_limit("any;ban", false);
  static const std::unique_ptr<CountedLimit> kLimitOfSeconds = make_limit("any;ban", true);
  return of_seconds ? *kLimitOfSeconds : *kLimit;
}

}  // namespace

const CountedLimit& ban_limit_of(const CountedLimit& limit) {
  static std::mutex mutex;
  static std::unordered_map<std::uint64_t, std::unique_ptr<CountedLimit>> all;
  const bool of_seconds = is_of_seconds(limit);
  const std::scoped_lock lock(mutex);
  std::unique_ptr<CountedLimit>& known = all[(std::uint64_t{limit.id} << 1U) | (of_seconds ? 1U : 0U)];
  if (known == nullptr) known = make_limit(limit.identity + ";ban", of_seconds);
  return *known;
}

const CountedLimit& any_ban_limit_of(const CountedLimit& limit) { return any_ban_limit(is_of_seconds(limit)); }

Verb ban_for(std::chrono::microseconds time) {
  return {.kind = Verb::Kind::overdraw, .amount = kAllButOne + static_cast<std::uint64_t>(time.count())};
}

void BanWatch::learn(std::uint64_t before, std::int64_t asked_at, std::int64_t until) {
  const std::scoped_lock lock(mutex_);
  const std::int64_t known_until = asked_at + std::chrono::nanoseconds(kKnownFor).count();
  // An answer of another thread may be newer.
  const bool is_newest = known_until >= known_until_.load(std::memory_order_relaxed);
  const bool is_whole = is_newest && before == bans_set_.load(std::memory_order_relaxed);
  if (is_whole || until > until_.load(std::memory_order_relaxed)) until_.store(until, std::memory_order_relaxed);
  if (is_newest) known_until_.store(known_until, std::memory_order_release);
}

void BanWatch::extend(std::int64_t until) {
  const std::scoped_lock lock(mutex_);
  bans_set_.fetch_add(1, std::memory_order_release);
  if (until > until_.load(std::memory_order_relaxed)) until_.store(until, std::memory_order_relaxed);
}

/// Stands for the caller's check, with the ban counters beside its own; or for a ban that is set.
class BanStore::Relay final : public Check {
 public:
  explicit Relay(BanStore& owner) : owner_(owner) {}
  void complete() override { owner_.relayed(*this); }

  Check* outer = nullptr;      ///< null: not in use
  std::int64_t ban_until = 0;  ///< of a ban that is set (steady ns); else 0
  std::vector<Charge> own_charges;
  std::vector<Decision> own_decisions;
  std::vector<std::uint64_t> own_leases;
  std::vector<std::size_t> ban_of;  ///< the caller's charge, of each that follows them

 private:
  BanStore& owner_;
};

/// Is there any ban?
class BanStore::Question final : public Check {
 public:
  explicit Question(BanStore& owner) : owner_(owner) {
    charges = {&charge_, 1};
    decisions = {&decision_, 1};
    verb = &verb_;
  }
  void begin(Time now) {
    is_pending = true;
    failure = Failure::none;
    asked_at = now.steady;
    before = owner_.watch_.bans_set();
  }
  void complete() override { owner_.answered(); }
  /// Steady ns, as it says.
  [[nodiscard]] std::int64_t until() const {
    return decision_.allowed ? INT64_MIN : asked_at + decision_.retry_after.value().count() + kMargin;
  }

  bool is_pending = false;
  std::int64_t asked_at = 0;
  std::uint64_t before = 0;

 private:
  BanStore& owner_;
  Charge charge_{.limit = &any_ban_limit(false), .key = kAnyBan};
  Decision decision_;
  Verb verb_ = Verb::peek();
};

BanStore::BanStore(std::shared_ptr<Store> primary, BanWatch& watch)
    : primary_(std::move(primary)), watch_(watch), question_(std::make_unique<Question>(*this)) {}

BanStore::~BanStore() = default;

Progress BanStore::judge(Check& check, Time now) {
  if (watch_.is_known(now)) return go_on(check, now);
  ask(now);
  if (question_->is_pending) {
    waiting_.push_back({.check = &check, .now = now, .failure = Failure::none});
    return Progress::pending;
  }
  if (question_->failure == Failure::none) return go_on(check, now);
  if (primary_->ready()) return with_bans(check, now);
  check.failure = question_->failure;
  return Progress::answered;
}

Progress BanStore::go_on(Check& check, Time now) {
  return watch_.may_be(now) ? with_bans(check, now) : pass(check, now);
}

Progress BanStore::pass(Check& check, Time now) {
  return check.verb != nullptr ? primary_->apply(check, now) : primary_->check(check, now);
}

Progress BanStore::apply(Check& check, Time now) {
  if (check.verb->kind == Verb::Kind::peek) return judge(check, now);
  const bool is_ban =
      check.verb->kind == Verb::Kind::overdraw && check.charges.front().limit->id == any_ban_limit(false).id;
  return is_ban ? set_ban(check, now) : primary_->apply(check, now);
}

Progress BanStore::set_ban(Check& check, Time now) {
  Relay& relay = relays_.take(*this, check);
  relay.own_charges.clear();
  relay.ban_of.clear();
  relay.verb = check.verb;
  relay.ban_until = now.steady + (static_cast<std::int64_t>(check.verb->amount - kAllButOne) * 1'000) + kMargin;
  const Progress progress = primary_->apply(relay, now);
  if (progress == Progress::answered) answer_from(relay);
  return progress;
}

void BanStore::cancel(Check& check) {
  const auto is_it = [&](const Waiting& waiting) { return waiting.check == &check; };
  if (std::erase_if(waiting_, is_it) > 0) return;
  const auto found = std::ranges::find_if(resuming_, is_it);
  if (found != resuming_.end()) {
    found->check = nullptr;
    return;
  }
  relays_.cancel(*primary_, check);
}

void BanStore::ask(Time now) {
  if (question_->is_pending) return;
  question_->begin(now);
  if (primary_->apply(*question_, now) == Progress::answered) learn();
}

void BanStore::learn() {
  question_->is_pending = false;
  if (question_->failure == Failure::none) watch_.learn(question_->before, question_->asked_at, question_->until());
}

void BanStore::answered() {
  learn();
  for (Waiting& waiting : waiting_) {
    waiting.failure = question_->failure;
    resuming_.push_back(waiting);
  }
  waiting_.clear();
  if (std::exchange(is_resuming_, true)) return;
  // By index: who is told may withdraw others, or ask again.
  std::size_t next = 0;
  while (next < resuming_.size()) {
    const Waiting waiting = std::exchange(resuming_[next++], {});
    if (waiting.check == nullptr) continue;
    waiting.check->failure = waiting.failure;
    const bool is_over = waiting.failure != Failure::none || go_on(*waiting.check, waiting.now) == Progress::answered;
    if (is_over) waiting.check->complete();
  }
  resuming_.clear();
  is_resuming_ = false;
}

const CountedLimit& BanStore::find_limit(const CountedLimit& limit) {
  if (limit.id >= limits_.size()) limits_.resize(limit.id + 1);
  const CountedLimit*& known = limits_[limit.id];
  if (known == nullptr) known = &ban_limit_of(limit);
  return *known;
}

Progress BanStore::with_bans(Check& check, Time now) {
  Relay& relay = relays_.take(*this, check);
  const std::size_t count = check.charges.size();
  relay.ban_until = 0;
  relay.own_charges.assign(check.charges.begin(), check.charges.end());
  relay.ban_of.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const Charge& charge = check.charges[i];
    if (charge.enforcement != Enforcement::enforce) continue;
    relay.own_charges.push_back(
        {.limit = &find_limit(*charge.limit), .key = charge.key, .cost = charge.cost == 0 ? 0U : 1U});
    relay.ban_of.push_back(i);
  }
  relay.own_decisions.assign(relay.own_charges.size(), Decision());
  relay.own_leases.assign(check.leases.empty() ? 0 : relay.own_charges.size(), 0);
  relay.charges = relay.own_charges;
  relay.decisions = relay.own_decisions;
  relay.leases = relay.own_leases;
  relay.verb = check.verb;
  const Progress progress = pass(relay, now);
  if (progress == Progress::answered) answer_from(relay);
  return progress;
}

void BanStore::relayed(Relay& relay) {
  Check& check = *relay.outer;
  answer_from(relay);
  check.complete();
}

void BanStore::answer_from(Relay& relay) {
  Check& check = *relay.outer;
  check.admitted = relay.admitted;
  check.failure = relay.failure;
  if (relay.ban_until != 0) {
    // Even when it has failed: it may have been done.
    watch_.extend(relay.ban_until);
    relays_.release(relay);
    return;
  }
  const std::size_t count = check.charges.size();
  std::copy_n(relay.own_decisions.begin(), count, check.decisions.begin());
  if (!check.leases.empty()) std::copy_n(relay.own_leases.begin(), count, check.leases.begin());
  for (std::size_t k = 0; k < relay.ban_of.size() && relay.failure == Failure::none; ++k) {
    const Decision& ban = relay.own_decisions[count + k];
    if (ban.allowed) continue;
    Decision& decision = check.decisions[relay.ban_of[k]];
    if (decision.allowed || decision.retry_after < ban.retry_after) decision.retry_after = ban.retry_after;
    decision.allowed = false;
    decision.mark = Mark::banned;
    decision.delay = Wait();
  }
  relays_.release(relay);
}

}  // namespace sluice::store
