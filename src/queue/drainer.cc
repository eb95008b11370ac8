#include "queue/drainer.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "limiter/charge_list.h"

namespace sluice::queue {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::size_t kFetch = 512;
constexpr nanoseconds kHoldOff = milliseconds(200);  ///< after a store could not answer
constexpr nanoseconds kBuryAgain = std::chrono::seconds(1);
constexpr auto kReportInterval = std::chrono::seconds(1);
constexpr milliseconds kTicketAfterlife = std::chrono::hours(1);
constexpr std::uint64_t kMostChunk = 5'000;
constexpr std::uint64_t kLeastStaged = 16;
constexpr std::uint64_t kMostStaged = 20'000;

std::int64_t us(std::int64_t ns) { return ns / 1'000; }

/// A message's request as the policy takes it.
class Asked {
 public:
  explicit Asked(const Message& message) {
    std::size_t count = 0;
    for (const MessageDescriptor& descriptor : message.descriptors) count += descriptor.entries.size();
    entries_.reserve(count);
    for (const MessageDescriptor& descriptor : message.descriptors) {
      const std::size_t first = entries_.size();
      for (const auto& [key, value] : descriptor.entries) entries_.push_back({.key = key, .value = value});
      Descriptor one;
      one.entries = std::span(entries_).subspan(first);
      one.cost = descriptor.cost;
      descriptors_.push_back(one);
    }
    request_.domain = message.domain;
    request_.descriptors = descriptors_;
    request_.cost = message.cost;
  }
  [[nodiscard]] const Request& request() const { return request_; }

 private:
  std::vector<Entry> entries_;
  std::vector<Descriptor> descriptors_;
  Request request_;
};

}  // namespace

/// Held by callbacks of other threads.
class Drainer::Shared {
 public:
  explicit Shared(boost::asio::io_context& io) : io_(&io) {}
  void end() {
    const std::scoped_lock lock(mutex_);
    io_ = nullptr;
  }
  /// Runs `work` on the drainer's thread, if there is still a drainer then.
  static void post(const std::shared_ptr<Shared>& self, std::function<void()> work) {
    const std::scoped_lock lock(self->mutex_);
    if (self->io_ == nullptr) return;
    boost::asio::post(*self->io_, [self, work = std::move(work)] {
      if (self->is_alive()) work();
    });
  }

 private:
  bool is_alive() {
    const std::scoped_lock lock(mutex_);
    return io_ != nullptr;
  }
  std::mutex mutex_;
  boost::asio::io_context* io_;
};

struct Drainer::Item {
  std::uint64_t tag = 0;
  Message message;
  Lane* lane = nullptr;
  Group* group = nullptr;
  std::uint64_t cost = 1;
  bool is_claimed = false;
  bool holds_group = false;  ///< nothing else of its group may go
  bool is_ending = false;    ///< the ticket or the dead letter is being written
  bool may_be_duplicate = false;
  unsigned attempts = 0;
  std::int64_t first_try = 0;   ///< steady
  std::int64_t not_before = 0;  ///< steady
};

/// Those that take turns: of one key, or of one that was over its limit.
struct Drainer::Group {
  bool is_ordered = false;
  bool is_busy = false;  ///< ordered, and one of it is staged or in flight
  bool is_listed = false;
  std::deque<ItemPtr> waiting;
};

/// A question to the store about one lane's counters.
class Drainer::Question final : public store::Check {
 public:
  explicit Question(Drainer& drainer) : drainer_(drainer) {}
  void complete() override { drainer_.answered(*this); }

  enum class Kind : std::uint8_t { none, reserve, check, refund };
  Kind kind = Kind::none;  ///< none: nothing is asked
  Lane* lane = nullptr;
  std::uint64_t amount = 0;
  store::Verb what;

 private:
  Drainer& drainer_;
};

/// The messages that are charged alike.
struct Drainer::Lane {
  enum class Mode : std::uint8_t { free, reserve, ask };

  Lane(Drainer& drainer, std::string its_name) : name(std::move(its_name)), question(drainer) { question.lane = this; }

  std::string name;
  Mode mode = Mode::free;
  std::shared_ptr<const policy::Policy> policy;  ///< keeps the limits of the charges
  std::deque<std::string> keys;
  std::vector<store::Charge> charges;
  std::vector<Decision> decisions;
  std::unique_ptr<TokenSchedule> schedule;  ///< mode reserve
  std::uint64_t chunk = 1;
  std::uint64_t most_staged = kLeastStaged;

  std::map<std::string, Group, std::less<>> groups;
  std::deque<Group*> turns;   ///< groups with something waiting
  std::deque<ItemPtr> ready;  ///< claimed, next to be delivered
  std::size_t staged = 0;     ///< ready, or about to be
  std::uint64_t staged_cost = 0;
  std::size_t items = 0;
  Question question;
  bool is_granted = false;  ///< mode ask: the first that is ready may go at grant_at
  std::int64_t grant_at = 0;
  std::int64_t blocked_until = 0;
  std::int64_t wake = 0;  ///< 0: none
  bool is_starved = false;
};

Drainer::Drainer(boost::asio::io_context& io, DrainerOptions options, policy::SnapshotReader& policy,
                 store::Store& store, Tickets& tickets, Broker& broker, Deliverer& deliverer, const Clock& clock)
    : io_(io),
      options_(std::move(options)),
      policy_(policy),
      store_(store),
      tickets_(tickets),
      broker_(broker),
      deliverer_(deliverer),
      clock_(clock),
      shared_(std::make_shared<Shared>(io)),
      timer_(io),
      report_timer_(io),
      stop_timer_(io) {}

Drainer::~Drainer() {
  shared_->end();
  for (const auto& [name, lane] : lanes_) {
    if (lane->question.kind != Question::Kind::none) store_.cancel(lane->question);
  }
}

void Drainer::post(std::function<void()> work) const { Shared::post(shared_, std::move(work)); }

void Drainer::start() {
  ConsumerOptions options;
  options.most = std::max<std::size_t>(options_.in_flight, 2 * kMostStaged / 20);
  options.arrived = [this, shared = shared_] { Shared::post(shared, [this] { fetch(); }); };
  consumer_ = broker_.consume(options);
  report();
}

DrainerCounts Drainer::counts() const {
  DrainerCounts counts = counts_;
  counts.waiting = items_.size();
  counts.in_flight = in_flight_;
  return counts;
}

// ---- messages come in

void Drainer::fetch() {
  if (stopping_) return;
  std::vector<Delivery> deliveries = consumer_->take(kFetch);
  for (Delivery& delivery : deliveries) take_in(std::move(delivery));
  if (deliveries.size() == kFetch) post([this] { fetch(); });
}

void Drainer::take_in(Delivery delivery) {
  auto item = std::make_shared<Item>();
  item->tag = delivery.tag;
  item->may_be_duplicate = false;
  std::string reason;
  switch (decode(delivery.payload, item->message, reason)) {
    case Decoded::foreign:
      ++counts_.report.foreign;
      if (consumer_->begin(item->tag)) consumer_->finish(item->tag);
      return;
    case Decoded::poisoned: {
      items_.insert(item);
      item->message.body = std::move(delivery.payload);
      std::ignore = consumer_->begin(item->tag);
      bury(item, "it cannot be read: " + reason, 0);
      return;
    }
    case Decoded::message:
      break;
  }
  items_.insert(item);
  judge(item);
}

/// What must be charged for the message, and behind whom it stands.
void Drainer::judge(const ItemPtr& item) {
  Lane& lane = lane_of(*item);
  const Message& message = item->message;
  const bool ordered = !message.key.empty();
  Group& group = lane.groups[(ordered ? "k" : "g") + (ordered ? message.key : message.group)];
  group.is_ordered = ordered;
  item->lane = &lane;
  item->group = &group;
  ++lane.items;
  group.waiting.push_back(item);
  list(lane, group);
  work(lane);
}

Drainer::Lane& Drainer::lane_of(Item& item) {
  const std::shared_ptr<const policy::Policy>& policy = policy_.get();
  limiter::ChargeList list;
  if (policy != nullptr) {
    const Asked asked(item.message);
    if (const policy::Domain* domain = policy->find_domain(asked.request().domain)) {
      list.collect(asked.request(), *policy, *domain);
    }
  }
  const auto charges = list.charges();
  const bool reserves = charges.size() == 1 && charges[0].limit->numbers.algorithm == Algorithm::token_bucket &&
                        charges[0].limit->numbers.rate > 0 && charges[0].enforcement != store::Enforcement::shadow;
  std::string name;
  for (const store::Charge& charge : charges) {
    name += std::to_string(reinterpret_cast<std::uintptr_t>(charge.limit)) + ' ' + std::string(charge.key);
    // What is asked is asked as a whole, so costs belong to it; what is reserved is counted in tokens.
    if (!reserves) name += ' ' + std::to_string(charge.cost);
    name += '\n';
  }
  if (reserves) item.cost = charges[0].cost;
  if (const auto found = lanes_.find(name); found != lanes_.end()) return *found->second;
  auto made = std::make_unique<Lane>(*this, name);
  Lane& lane = *made;
  lane.policy = policy;
  for (const store::Charge& charge : charges) {
    store::Charge& copy = lane.charges.emplace_back(charge);
    copy.key = lane.keys.emplace_back(charge.key);
  }
  lane.decisions.resize(lane.charges.size());
  if (!charges.empty()) lane.mode = reserves ? Lane::Mode::reserve : Lane::Mode::ask;
  if (reserves) {
    const Limit& numbers = charges[0].limit->numbers;
    lane.schedule = std::make_unique<TokenSchedule>(numbers);
    const double rate = static_cast<double>(numbers.rate) / static_cast<double>(numbers.period.count());
    const double chunk = rate * static_cast<double>(options_.horizon.count());
    lane.chunk = static_cast<std::uint64_t>(std::clamp(chunk, 1.0, static_cast<double>(kMostChunk)));
  }
  lane.most_staged = std::clamp(4 * lane.chunk, kLeastStaged, kMostStaged);
  lanes_.emplace(std::move(name), std::move(made));
  return lane;
}

// ---- one lane's turn

void Drainer::work(Lane& lane) {
  const std::int64_t now = clock_.now().steady;
  if (!stopping_) {
    stage(lane, now);
    if (lane.mode == Lane::Mode::reserve) reserve(lane, now);
    if (lane.mode == Lane::Mode::ask) ask(lane, now);
    deliver_due(lane);
  }
  forget_if_empty(lane);
}

/// It takes its turns while it has something that may go.
void Drainer::list(Lane& lane, Group& group) {
  if (group.is_listed || group.is_busy || group.waiting.empty()) return;
  group.is_listed = true;
  lane.turns.push_back(&group);
}

void Drainer::free_group(Item& item) {
  if (!std::exchange(item.holds_group, false)) return;
  item.group->is_busy = false;
  list(*item.lane, *item.group);
}

/// To be taken again, before those behind it.
void Drainer::put_first(const ItemPtr& item) {
  item->group->waiting.push_front(item);
  free_group(*item);
  list(*item->lane, *item->group);
}

/// Chooses who is next, in turns, and makes sure that it is still wanted.
void Drainer::stage(Lane& lane, std::int64_t now) {
  std::int64_t earliest = INT64_MAX;
  for (std::size_t left = lane.turns.size(); left > 0 && lane.staged < lane.most_staged; --left) {
    Group& group = *lane.turns.front();
    lane.turns.pop_front();
    const ItemPtr item = group.waiting.front();
    if (item->not_before > now) {
      earliest = std::min(earliest, item->not_before);
      lane.turns.push_back(&group);
      continue;
    }
    group.waiting.pop_front();
    group.is_listed = false;
    group.is_busy = item->holds_group = group.is_ordered;
    list(lane, group);
    left = lane.turns.size() + 1;
    ++lane.staged;
    lane.staged_cost += item->cost;
    claim(lane, item);
  }
  if (earliest != INT64_MAX) wake_at(lane, earliest);
}

void Drainer::claim(Lane& lane, const ItemPtr& item) {
  if (item->is_claimed) {
    lane.ready.push_back(item);
    return;
  }
  tickets_.claim(item->message.ticket, options_.queue, life_of(item->message),
                 [this, shared = shared_, item](bool reached, std::optional<TicketState> before) {
                   Shared::post(shared, [this, item, reached, before] { claimed(item, reached, before); });
                 });
}

void Drainer::claimed(const ItemPtr& item, bool reached, std::optional<TicketState> before) {
  Lane& lane = *item->lane;
  if (stopping_) return;
  if (!reached) {
    item->not_before = clock_.now().steady + kHoldOff.count();
    --lane.staged;
    lane.staged_cost -= item->cost;
    put_first(item);
    work(lane);
    return;
  }
  const TicketState state = before.value_or(TicketState::queued);
  item->is_claimed = true;
  if (state == TicketState::queued || state == TicketState::running) {
    item->may_be_duplicate = state == TicketState::running;
    lane.ready.push_back(item);
    work(lane);
    return;
  }
  ++(state == TicketState::cancelled ? counts_.cancelled : counts_.already);
  --lane.staged;
  lane.staged_cost -= item->cost;
  if (consumer_->begin(item->tag)) consumer_->finish(item->tag);
  release(item);
}

/// Takes tokens for those who are next, before they are needed.
void Drainer::reserve(Lane& lane, std::int64_t now) {
  if (lane.question.kind != Question::Kind::none || lane.ready.empty() || lane.blocked_until > now) return;
  const std::uint64_t left = lane.schedule->left();
  const std::uint64_t head = lane.ready.front()->cost;
  if (left >= lane.staged_cost) return;
  const bool has_for_head = left >= head;
  // By the bucket's own time, however late deliveries are: a bucket that fills up gives nothing more.
  if (has_for_head && lane.schedule->last() - now > options_.horizon.count() / 2) return;
  const std::uint64_t burst = lane.charges[0].limit->numbers.burst;
  if (head > burst) {
    const ItemPtr item = lane.ready.front();
    lane.ready.pop_front();
    --lane.staged;
    lane.staged_cost -= item->cost;
    std::ignore = consumer_->begin(item->tag);
    bury(item, "its cost is more than its limit can ever have", 0);
    return;
  }
  Question& question = lane.question;
  question.kind = Question::Kind::reserve;
  question.amount = std::min(lane.staged_cost - left, std::max(lane.chunk, has_for_head ? 0 : head - left));
  question.what = store::Verb::settle(0, question.amount);
  question.verb = &question.what;
  question.charges = lane.charges;
  question.decisions = lane.decisions;
  if (store_.apply(question, clock_.now()) == store::Progress::answered) answered(question);
}

void Drainer::ask(Lane& lane, std::int64_t now) {
  if (lane.question.kind != Question::Kind::none || lane.is_granted || lane.ready.empty()) return;
  if (lane.blocked_until > now) {
    wake_at(lane, lane.blocked_until);
    return;
  }
  Question& question = lane.question;
  question.kind = Question::Kind::check;
  question.verb = nullptr;
  question.admitted = false;
  question.charges = lane.charges;
  question.decisions = lane.decisions;
  if (store_.check(question, clock_.now()) == store::Progress::answered) answered(question);
}

void Drainer::answered(Question& question) {
  Lane& lane = *question.lane;
  const Question::Kind kind = std::exchange(question.kind, Question::Kind::none);
  const std::int64_t now = clock_.now().steady;
  if (question.failure != store::Failure::none) {
    hold_off(lane, now);
  } else if (kind == Question::Kind::reserve) {
    answered_reserve(question, lane, now);
  } else if (kind == Question::Kind::check) {
    answered_check(question, lane, now);
  }
  if (stopping_) {
    if (kind != Question::Kind::refund) give_back(lane);
    leave();
    return;
  }
  // Not at once: the caller may be in the midst of this lane.
  wake_at(lane, now);
}

void Drainer::answered_reserve(Question& question, Lane& lane, std::int64_t now) {
  const Decision& decision = lane.decisions[0];
  // The bucket is full again after reset_after. It has paid its debt, and the tokens are there, a whole burst earlier.
  const std::int64_t full = decision.reset_after.is_never() ? 0 : decision.reset_after.value().count();
  const std::int64_t burst = lane.schedule->length_of(lane.charges[0].limit->numbers.burst);
  lane.schedule->add(question.amount, now + std::max<std::int64_t>(full - burst, 0));
}

void Drainer::answered_check(Question& question, Lane& lane, std::int64_t now) {
  if (question.admitted) {
    std::int64_t delay = 0;
    for (const Decision& decision : lane.decisions) {
      if (!decision.delay.is_never()) delay = std::max(delay, decision.delay.value().count());
    }
    lane.is_granted = true;
    lane.grant_at = now + delay;
    return;
  }
  std::int64_t wait = 1'000'000;
  bool fits = true;
  for (std::size_t i = 0; i < lane.charges.size(); ++i) {
    const Decision& decision = lane.decisions[i];
    if (decision.allowed || lane.charges[i].enforcement == store::Enforcement::shadow) continue;
    if (lane.charges[i].cost > decision.limit && lane.charges[i].limit->numbers.rate > 0) fits = false;
    wait = std::max(
        wait, decision.retry_after.is_never() ? std::int64_t{1'000'000'000} : decision.retry_after.value().count());
  }
  lane.blocked_until = now + wait;
  if (fits || lane.ready.empty()) return;
  const ItemPtr item = lane.ready.front();
  lane.ready.pop_front();
  --lane.staged;
  lane.staged_cost -= item->cost;
  std::ignore = consumer_->begin(item->tag);
  bury(item, "its cost is more than its limit can ever have", 0);
}

/// The store could not answer. What it may have taken is lost, so the rate is kept.
void Drainer::hold_off(Lane& lane, std::int64_t now) {
  lane.blocked_until = now + kHoldOff.count();
  wake_at(lane, lane.blocked_until);
}

void Drainer::deliver_due(Lane& lane) {
  std::int64_t now = 0;
  while (!lane.ready.empty() && !stopping_) {
    const ItemPtr item = lane.ready.front();
    now = clock_.now().steady;
    std::int64_t due = now;
    if (lane.mode == Lane::Mode::reserve) due = lane.schedule->due(item->cost);
    if (lane.mode == Lane::Mode::ask) due = lane.is_granted ? lane.grant_at : TokenSchedule::kNone;
    if (due == TokenSchedule::kNone) return;
    if (due > now) {
      wake_at(lane, due);
      return;
    }
    if (in_flight_ >= options_.in_flight) {
      if (!std::exchange(lane.is_starved, true)) starved_.push_back(&lane);
      return;
    }
    lane.ready.pop_front();
    --lane.staged;
    lane.staged_cost -= item->cost;
    const bool expired = item->message.expires_us != 0 && item->message.expires_us <= us(clock_.now().utc);
    if (expired || !consumer_->begin(item->tag)) {
      // Nothing is used up: the next one may have it.
      if (expired) {
        drop(item, TicketState::expired, "it has waited longer than it may");
      } else {
        release(item);
      }
      continue;
    }
    if (lane.mode == Lane::Mode::reserve) lane.schedule->use(item->cost, now);
    lane.is_granted = false;
    deliver(lane, item);
    if (lane.mode == Lane::Mode::ask) ask(lane, now);
    if (lane.mode == Lane::Mode::reserve) reserve(lane, now);
  }
}

void Drainer::deliver(Lane& /*lane*/, const ItemPtr& item) {
  ++in_flight_;
  ++item->attempts;
  if (item->first_try == 0) item->first_try = clock_.now().steady;
  if (item->may_be_duplicate || item->attempts > 1) ++counts_.report.duplicates;
  const Attempt attempt{.message = &item->message,
                        .number = item->attempts,
                        .may_be_duplicate = item->may_be_duplicate || item->attempts > 1};
  deliverer_.start(attempt, [this, item](Outcome outcome) { ended(item, outcome); });
}

// ---- a delivery has ended

void Drainer::ended(const ItemPtr& item, const Outcome& outcome) {
  --in_flight_;
  switch (outcome.kind) {
    case Outcome::Kind::delivered:
      ++counts_.report.delivered;
      begin_end(*item);
      tickets_.finish(item->message.ticket, TicketState::done, outcome.status, "", kTicketAfterlife,
                      [this, shared = shared_, item](bool /*reached*/, std::optional<TicketState> /*before*/) {
                        Shared::post(shared, [this, item] { finish(item); });
                      });
      // The next of its key need not wait for the ticket.
      free_group(*item);
      if (!stopping_) wake_at(*item->lane, clock_.now().steady);
      break;
    case Outcome::Kind::retry:
      retry(item, outcome);
      break;
    case Outcome::Kind::refused:
      bury(item, outcome.reason, outcome.status);
      break;
  }
  while (!starved_.empty() && in_flight_ < options_.in_flight) {
    Lane* lane = starved_.front();
    starved_.pop_front();
    lane->is_starved = false;
    wake_at(*lane, clock_.now().steady);
  }
  if (stopping_) leave();
}

void Drainer::retry(const ItemPtr& item, const Outcome& outcome) {
  const std::int64_t now = clock_.now().steady;
  nanoseconds pause = options_.first_pause;
  for (unsigned i = 1; i < item->attempts && pause < options_.longest_pause; ++i) pause *= 2;
  pause = std::min(pause, options_.longest_pause);
  const bool too_long =
      options_.longest_hold.count() > 0 && now + pause.count() - item->first_try > options_.longest_hold.count();
  if (item->attempts >= options_.attempts || too_long) {
    bury(item, outcome.reason, outcome.status);
    return;
  }
  ++counts_.retries;
  consumer_->pause(item->tag);
  item->not_before = now + pause.count();
  put_first(item);
  wake_at(*item->lane, now);
}

void Drainer::begin_end(Item& item) {
  if (!std::exchange(item.is_ending, true)) ++ending_;
}

void Drainer::end_end(Item& item) {
  if (std::exchange(item.is_ending, false)) --ending_;
}

/// Makes it a dead letter. The broker is told that the message is done with once the letter is stored.
void Drainer::bury(const ItemPtr& item, std::string reason, int status) {
  begin_end(*item);
  Publish letter;
  Message& message = item->message;
  message.reason = reason;
  message.attempts = item->attempts;
  letter.payload = encode(message);
  letter.spread = message.group;
  letter.dead = true;
  letter.reason = reason;
  broker_.publish(std::move(letter), [this, shared = shared_, item, reason, status](bool stored, std::string_view) {
    Shared::post(shared, [this, item, reason, status, stored] {
      if (!stored) {
        bury_again(item, reason, status);
        return;
      }
      ++counts_.report.dead;
      drop(item, TicketState::failed, reason, status);
    });
  });
}

void Drainer::bury_again(const ItemPtr& item, const std::string& reason, int status) {
  const auto timer = std::make_shared<boost::asio::steady_timer>(io_, kBuryAgain);
  timer->async_wait([this, shared = shared_, timer, item, reason, status](const boost::system::error_code&) {
    Shared::post(shared, [this, item, reason, status] {
      if (!stopping_) {
        bury(item, reason, status);
        return;
      }
      end_end(*item);
      leave();
    });
  });
}

void Drainer::drop(const ItemPtr& item, TicketState state, std::string reason, int status) {
  begin_end(*item);
  if (state == TicketState::expired) {
    ++counts_.report.expired;
    std::ignore = consumer_->begin(item->tag);
  }
  const std::string& ticket = item->message.ticket;
  if (!is_ticket(ticket)) {
    finish(item);
    return;
  }
  tickets_.finish(ticket, state, status, std::move(reason), kTicketAfterlife,
                  [this, shared = shared_, item](bool /*reached*/, std::optional<TicketState> /*before*/) {
                    Shared::post(shared, [this, item] { finish(item); });
                  });
}

void Drainer::finish(const ItemPtr& item) {
  consumer_->finish(item->tag);
  end_end(*item);
  release(item);
  if (stopping_) leave();
}

/// The drainer has nothing to do with it any more.
void Drainer::release(const ItemPtr& item) {
  if (items_.erase(item) == 0 || item->lane == nullptr) return;
  Lane& lane = *item->lane;
  free_group(*item);
  --lane.items;
  if (!stopping_) wake_at(lane, clock_.now().steady);
}

/// Tokens that nobody will use.
void Drainer::give_back(Lane& lane) {
  if (lane.schedule == nullptr || lane.question.kind != Question::Kind::none) return;
  const std::uint64_t left = lane.schedule->clear();
  if (left == 0) return;
  Question& question = lane.question;
  question.kind = Question::Kind::refund;
  question.what = store::Verb::refund(left);
  question.verb = &question.what;
  question.charges = lane.charges;
  question.decisions = lane.decisions;
  if (store_.apply(question, clock_.now()) == store::Progress::answered) answered(question);
}

void Drainer::forget_if_empty(Lane& lane) {
  if (lane.items > 0 || stopping_) return;
  lane.groups.clear();
  lane.turns.clear();
  give_back(lane);
  if (lane.question.kind != Question::Kind::none || lane.is_starved) return;
  if (lane.wake != 0) wakes_.erase({lane.wake, &lane});
  const std::string name = lane.name;
  lanes_.erase(name);
}

// ---- time

void Drainer::wake_at(Lane& lane, std::int64_t at) {
  at = std::max<std::int64_t>(at, 1);
  if (lane.wake != 0) {
    if (lane.wake <= at) return;
    wakes_.erase({lane.wake, &lane});
  }
  lane.wake = at;
  wakes_.insert({at, &lane});
  if (wakes_.begin()->second == &lane) arm();
}

void Drainer::arm() {
  if (wakes_.empty() || stopping_) return;
  const nanoseconds wait(std::max<std::int64_t>(wakes_.begin()->first - clock_.now().steady, 0));
  timer_.expires_after(wait);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) fire();
  });
}

void Drainer::fire() {
  const std::int64_t now = clock_.now().steady;
  while (!wakes_.empty() && wakes_.begin()->first <= now && !stopping_) {
    Lane& lane = *wakes_.begin()->second;
    wakes_.erase(wakes_.begin());
    lane.wake = 0;
    work(lane);
  }
  arm();
}

milliseconds Drainer::life_of(const Message& message) const {
  if (message.expires_us == 0) return kTicketAfterlife;
  const std::int64_t left = message.expires_us - us(clock_.now().utc);
  return milliseconds(std::max<std::int64_t>(left, 0) / 1000) + kTicketAfterlife;
}

void Drainer::report() {
  DrainReport added;
  const DrainReport& now = counts_.report;
  added.delivered = now.delivered - reported_.delivered;
  added.duplicates = now.duplicates - reported_.duplicates;
  added.dead = now.dead - reported_.dead;
  added.expired = now.expired - reported_.expired;
  added.foreign = now.foreign - reported_.foreign;
  added.held = items_.size();
  for (const ItemPtr& item : items_) {
    const std::int64_t created = item->message.created_us;
    if (created != 0 && (added.oldest_us == 0 || created < added.oldest_us)) added.oldest_us = created;
  }
  reported_ = now;
  tickets_.report(options_.queue, options_.drainer, added);
  if (stopping_) return;
  report_timer_.expires_after(kReportInterval);
  report_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) report();
  });
}

// ---- the end

void Drainer::stop(std::function<void()> stopped) {
  stopping_ = true;
  stopped_ = std::move(stopped);
  timer_.cancel();
  report_timer_.cancel();
  stop_timer_.expires_after(options_.drain_timeout);
  stop_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      in_flight_ = 0;
      ending_ = 0;
      leave();
    }
  });
  for (const auto& [name, lane] : lanes_) give_back(*lane);
  leave();
}

void Drainer::leave() {
  if (in_flight_ > 0 || ending_ > 0 || left_ || stopped_ == nullptr) return;
  for (const auto& [name, lane] : lanes_) {
    if (lane->question.kind != Question::Kind::none) return;
  }
  left_ = true;
  stop_timer_.cancel();
  post([this] {
    consumer_->stop();
    items_.clear();
    report();
    stopped_();
  });
}

}  // namespace sluice::queue
