#include "queue/drainer.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace sluice::queue {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::size_t kFetch = 512;
constexpr nanoseconds kHoldOff = milliseconds(200);  ///< after the tickets could not answer
constexpr auto kReportInterval = std::chrono::seconds(1);

}  // namespace

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
      handle_(std::make_shared<LoopHandle>(io)),
      timer_(io),
      report_timer_(io),
      stop_timer_(io) {}

Drainer::~Drainer() {
  handle_->end();
  for (const auto& [name, lane] : lanes_) {
    if (lane->question.kind != DrainQuestion::Kind::none) store_.cancel(lane->question);
  }
}

void Drainer::post(std::function<void()> work) const { LoopHandle::post(handle_, std::move(work)); }

void Drainer::start(std::function<void()> broken) {
  broken_ = std::move(broken);
  ConsumerOptions options;
  options.most = std::max(options_.in_flight, options_.in_hand);
  options.arrived = [this, handle = handle_] { LoopHandle::post(handle, [this] { fetch(); }); };
  options.lost = [this, handle = handle_] { LoopHandle::post(handle, [this] { give_up_lost(); }); };
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
  auto item = std::make_shared<DrainItem>();
  item->tag = delivery.tag;
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
void Drainer::judge(const DrainItemPtr& item) {
  follow_policy();
  DrainLane& lane = lane_of(*item);
  item->lane = &lane;
  const Message& message = item->message;
  const bool ordered = !message.key.empty();
  lane.turns.put(item, ordered ? "k" + message.key : "g" + message.group, ordered);
  touch(lane);
}

DrainLane& Drainer::lane_of(DrainItem& item) {
  std::string name = DrainLane::charges_of(item.message, followed_.get(), charges_);
  if (DrainLane::can_reserve(charges_)) item.cost = charges_.charges()[0].cost;
  if (const auto found = lanes_.find(name); found != lanes_.end()) return *found->second;
  auto made = std::make_unique<DrainLane>(name, [this](DrainQuestion& question) { answered(question); });
  made->set_limits(charges_, followed_, options_.horizon);
  return *lanes_.emplace(std::move(name), std::move(made)).first->second;
}

/// Lanes take over new limits when nothing is being asked about their old ones.
void Drainer::follow_policy() {
  const std::shared_ptr<const policy::Policy>& newest = policy_.get();
  if (newest == followed_) return;
  followed_ = newest;
  for (const DrainItemPtr& item : items_) {
    if (item->lane == nullptr || item->lane->outdated_by != nullptr) continue;
    item->lane->outdated_by = item;
    touch(*item->lane);
  }
}

void Drainer::renew(DrainLane& lane) {
  if (lane.question.kind != DrainQuestion::Kind::none) return;
  if (lane.schedule != nullptr && lane.schedule->left() > 0) {
    give_back(lane);
    if (lane.question.kind != DrainQuestion::Kind::none) return;
  }
  const DrainItemPtr sample = std::exchange(lane.outdated_by, nullptr);
  // What other limits apply to now keeps its old ones: it stands in a line of this lane.
  if (DrainLane::charges_of(sample->message, followed_.get(), charges_) != lane.name) return;
  lane.set_limits(charges_, followed_, options_.horizon);
}

// ---- one lane's turn

/// Its turn comes soon, once for all that happens to it until then.
void Drainer::touch(DrainLane& lane) {
  if (std::exchange(lane.is_touched, true)) return;
  touched_.push_back(&lane);
  if (touched_.size() == 1) post([this] { work_touched(); });
}

void Drainer::work_touched() {
  for (DrainLane* lane : std::exchange(touched_, {})) {
    lane->is_touched = false;
    work(*lane);
  }
}

void Drainer::work(DrainLane& lane) {
  if (!stopping_) {
    const std::int64_t now = clock_.now().steady;
    if (lane.outdated_by != nullptr) renew(lane);
    stage(lane, now);
    if (lane.mode == DrainLane::Mode::reserve) reserve(lane, now);
    if (lane.mode == DrainLane::Mode::ask) ask(lane, now);
    deliver_due(lane);
    deliverer_.flush();
  }
  forget_if_empty(lane);
}

/// Chooses who is next, and makes sure that it is still wanted.
void Drainer::stage(DrainLane& lane, std::int64_t now) {
  while (!lane.later.empty() && lane.later.begin()->first <= now) {
    lane.turns.put_back(lane.later.begin()->second);
    lane.later.erase(lane.later.begin());
  }
  if (!lane.unreached.empty() && lane.ask_again_at <= now) {
    for (const DrainItemPtr& item : std::exchange(lane.unreached, {})) claim(item);
  }
  while (lane.unreached.empty() && lane.turns.staged() < lane.most_staged) {
    const DrainItemPtr item = lane.turns.stage_next();
    if (item == nullptr) break;
    if (consumer_->holds(item->tag)) {
      claim(item);
    } else {
      give_up(item);
    }
  }
  if (!lane.later.empty()) wake_at(lane, lane.later.begin()->first);
  if (!lane.unreached.empty()) wake_at(lane, lane.ask_again_at);
}

void Drainer::claim(const DrainItemPtr& item) {
  ++claiming_;
  tickets_.claim(item->message.ticket, options_.queue, life_of(item->message),
                 [this, handle = handle_, item](bool reached, std::optional<TicketState> before) {
                   LoopHandle::post(handle, [this, item, reached, before] { claimed(item, reached, before); });
                 });
}

void Drainer::claimed(const DrainItemPtr& item, bool reached, std::optional<TicketState> before) {
  if (claiming_ > 0) --claiming_;
  if (stopping_) {
    if (reached) untried(*item);
    leave();
    return;
  }
  DrainLane& lane = *item->lane;
  touch(lane);
  if (!reached) {
    lane.unreached.push_back(item);
    lane.ask_again_at = clock_.now().steady + kHoldOff.count();
    return;
  }
  const TicketState state = before.value_or(TicketState::queued);
  if (state == TicketState::queued || state == TicketState::running) {
    if (!consumer_->holds(item->tag)) {
      untried(*item);
      give_up(item);
      return;
    }
    item->may_be_duplicate = state == TicketState::running;
    lane.turns.claimed(item);
    return;
  }
  ++(state == TicketState::cancelled ? counts_.cancelled : counts_.already);
  lane.turns.withdraw(item);
  if (consumer_->begin(item->tag)) consumer_->finish(item->tag);
  release(item);
}

/// A staged one that another consumer has now, or will have.
void Drainer::give_up(const DrainItemPtr& item) {
  item->lane->turns.withdraw(item);
  release(item);
}

/// What is claimed and no longer held is given back at once, so that who has it now does not take it for begun.
void Drainer::give_up_lost() {
  if (stopping_) return;
  for (const DrainItemPtr& item : std::vector(items_.begin(), items_.end())) {
    if (!item->is_claimed || item->lane == nullptr || consumer_->holds(item->tag)) continue;
    if (!item->lane->turns.withdraw(item)) continue;
    untried(*item);
    release(item);
  }
}

void Drainer::deliver_due(DrainLane& lane) {
  while (!stopping_ && fault_.empty()) {
    const DrainItemPtr item = lane.turns.head();
    if (item == nullptr) return;
    const std::int64_t now = clock_.now().steady;
    if (hindered_until_ > now) {
      wake_at(lane, hindered_until_);
      return;
    }
    std::int64_t due = now;
    if (lane.mode == DrainLane::Mode::reserve) due = lane.schedule->due(item->cost);
    if (lane.mode == DrainLane::Mode::ask) due = lane.is_granted ? lane.grant_at : TokenSchedule::kNone;
    if (due == TokenSchedule::kNone) return;
    if (due > now) {
      wake_at(lane, std::max(due, now + lane.grain));
      return;
    }
    if (in_flight_ >= options_.in_flight) {
      if (!std::exchange(lane.is_starved, true)) starved_.push_back(&lane);
      return;
    }
    std::ignore = lane.turns.take_head();
    const bool expired = item->message.expires_us != 0 && item->message.expires_us <= clock_.now().utc / 1'000;
    if (expired || !consumer_->begin(item->tag)) {
      untried(*item);
      // Nothing is used up: the next one may have it.
      if (expired) {
        drop(item, TicketState::expired, "it has waited longer than it may");
      } else {
        release(item);
      }
      continue;
    }
    lane.is_granted = false;
    deliver(item);
    // By the time afterwards: a receiver may have seen it as late as now, and counts its second from there.
    if (lane.mode == DrainLane::Mode::reserve) lane.schedule->use(item->cost, clock_.now().steady);
    if (lane.mode == DrainLane::Mode::ask) ask(lane, now);
    if (lane.mode == DrainLane::Mode::reserve) reserve(lane, now);
    // Staged ones must not run out while many are due.
    if (lane.turns.staged() < lane.most_staged / 2) stage(lane, now);
  }
}

void Drainer::deliver(const DrainItemPtr& item) {
  ++in_flight_;
  ++item->attempts;
  if (item->first_try == 0) item->first_try = clock_.now().steady;
  if (item->attempts > 1) tickets_.add_attempts(item->message.ticket, 1);
  const Attempt attempt{.message = &item->message,
                        .number = item->attempts,
                        .may_be_duplicate = item->may_be_duplicate || item->attempts > 1};
  deliverer_.start(attempt, [this, item](const Outcome& outcome) { ended(item, outcome); });
}

/// A claimed one will not be tried by this drainer: the ticket counts one attempt too many, and may be queued again.
void Drainer::untried(const DrainItem& item) {
  if (item.attempts == 0 && !item.is_begun) tickets_.add_attempts(item.message.ticket, -1);
}

void Drainer::forget_if_empty(DrainLane& lane) {
  if (!lane.turns.is_empty() || stopping_) return;
  give_back(lane);
  if (lane.question.kind != DrainQuestion::Kind::none || lane.is_starved || lane.is_touched) return;
  if (lane.wake != 0) wakes_.erase({lane.wake, &lane});
  const std::string name = lane.name;
  lanes_.erase(name);
}

// ---- time

void Drainer::wake_at(DrainLane& lane, std::int64_t at) {
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
    DrainLane& lane = *wakes_.begin()->second;
    wakes_.erase(wakes_.begin());
    lane.wake = 0;
    work(lane);
  }
  arm();
}

milliseconds Drainer::life_of(const Message& message) const {
  if (message.expires_us == 0) return kTicketAfterlife;
  const std::int64_t left = message.expires_us - clock_.now().utc / 1'000;
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
  for (const DrainItemPtr& item : items_) {
    const std::int64_t created = item->message.created_us;
    if (created != 0 && (added.oldest_us == 0 || created < added.oldest_us)) added.oldest_us = created;
  }
  reported_ = now;
  tickets_.report(options_.queue, options_.drainer, added);
  if (stopping_) return;
  follow_policy();
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
      claiming_ = 0;
      leave();
    }
  });
  for (const auto& [name, lane] : lanes_) give_back(*lane);
  for (const DrainItemPtr& item : items_) {
    if (item->is_claimed && !item->is_ending) untried(*item);
  }
  leave();
}

void Drainer::leave() {
  if (in_flight_ > 0 || ending_ > 0 || claiming_ > 0 || left_ || stopped_ == nullptr) return;
  for (const auto& [name, lane] : lanes_) {
    if (lane->question.kind != DrainQuestion::Kind::none) return;
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
