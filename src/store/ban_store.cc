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

std::unique_ptr<CountedLimit> make_limit(std::string identity) {
  auto made = std::make_unique<CountedLimit>();
  made->numbers.algorithm = Algorithm::token_bucket;
  made->numbers.rate = made->numbers.burst = kPerSecond;
  made->numbers.period = std::chrono::seconds(1);
  made->id = limit_id(identity);
  made->identity = std::move(identity);
  made->on_store_failure = OnStoreFailure::allow;
  return made;
}

bool has_figures(const Decision& decision) {
  return decision.source != Source::fallback_allow && decision.source != Source::fallback_deny;
}

}  // namespace

const CountedLimit& ban_limit_of(const CountedLimit& limit) {
  static std::mutex mutex;
  static std::unordered_map<std::uint32_t, std::unique_ptr<CountedLimit>> all;
  const std::scoped_lock lock(mutex);
  std::unique_ptr<CountedLimit>& known = all[limit.id];
  if (known == nullptr) known = make_limit(limit.identity + ";ban");
  return *known;
}

const CountedLimit& any_ban_limit() {
  static const std::unique_ptr<CountedLimit> limit = make_limit("any;ban");
  return *limit;
}

Verb ban_for(std::chrono::microseconds time) {
  return {.kind = Verb::Kind::overdraw, .amount = kPerSecond + static_cast<std::uint64_t>(time.count())};
}

/// Stands for the caller's check, with the ban counters beside its own.
class BanStore::Relay final : public Check {
 public:
  explicit Relay(BanStore& owner) : owner_(owner) {}
  void complete() override { owner_.relayed(*this); }

  Check* outer = nullptr;  ///< null: not in use
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
  Question(BanWatch& watch) : watch_(watch) {
    charges = {&charge_, 1};
    decisions = {&decision_, 1};
    verb = &verb_;
  }
  void begin(Time now) {
    is_pending = true;
    failure = Failure::none;
    asked_at_ = now.steady;
    before_ = watch_.until();
  }
  void complete() override {
    is_pending = false;
    if (failure != Failure::none || !has_figures(decision_)) return;
    const Wait& wait = decision_.retry_after;
    watch_.learn(before_, decision_.allowed ? INT64_MIN : asked_at_ + wait.value().count());
  }

  bool is_pending = false;

 private:
  BanWatch& watch_;
  Charge charge_{.limit = &any_ban_limit(), .key = kAnyBan};
  Decision decision_;
  Verb verb_ = Verb::peek();
  std::int64_t asked_at_ = 0;
  std::int64_t before_ = 0;
};

BanStore::BanStore(std::shared_ptr<Store> primary, BanWatch& watch)
    : primary_(std::move(primary)), watch_(watch), question_(std::make_unique<Question>(watch)) {}

BanStore::~BanStore() = default;

Progress BanStore::check(Check& check, Time now) {
  if (watch_.is_to_ask(now)) ask(now);
  return watch_.may_be(now) ? with_bans(check, now) : primary_->check(check, now);
}

Progress BanStore::apply(Check& check, Time now) {
  if (check.verb->kind == Verb::Kind::peek) {
    if (watch_.is_to_ask(now)) ask(now);
    if (watch_.may_be(now)) return with_bans(check, now);
  }
  if (check.verb->kind == Verb::Kind::overdraw && check.charges.front().limit == &any_ban_limit()) {
    watch_.extend(now.steady + static_cast<std::int64_t>(check.verb->amount - kPerSecond) * 1'000);
  }
  return primary_->apply(check, now);
}

void BanStore::cancel(Check& check) { relays_.cancel(*primary_, check); }

void BanStore::ask(Time now) {
  if (question_->is_pending) return;
  question_->begin(now);
  if (primary_->apply(*question_, now) == Progress::answered) question_->complete();
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
  const Progress progress = check.verb != nullptr ? primary_->apply(relay, now) : primary_->check(relay, now);
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
  const std::size_t count = check.charges.size();
  check.admitted = relay.admitted;
  check.failure = relay.failure;
  std::copy_n(relay.own_decisions.begin(), count, check.decisions.begin());
  if (!check.leases.empty()) std::copy_n(relay.own_leases.begin(), count, check.leases.begin());
  for (std::size_t k = 0; k < relay.ban_of.size(); ++k) {
    const Decision& ban = relay.own_decisions[count + k];
    if (ban.allowed || !has_figures(ban)) continue;
    Decision& decision = check.decisions[relay.ban_of[k]];
    if (decision.allowed || decision.retry_after < ban.retry_after) decision.retry_after = ban.retry_after;
    decision.allowed = false;
    decision.mark = Mark::banned;
    decision.delay = Wait();
  }
  relays_.release(relay);
}

}  // namespace sluice::store
