// The tokens of a drainer's lanes: reserved, asked for, given back.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <tuple>
#include <utility>

#include "queue/drainer.h"

namespace sluice::queue {
namespace {

constexpr std::chrono::nanoseconds kHoldOff = std::chrono::milliseconds(200);  ///< after a store could not answer

}  // namespace

/// Takes tokens for those who are next, before they are needed.
void Drainer::reserve(DrainLane& lane, std::int64_t now) {
  if (lane.question.kind != DrainQuestion::Kind::none) return;
  if (lane.blocked_until > now) {
    wake_at(lane, lane.blocked_until);
    return;
  }
  const DrainItemPtr next = lane.turns.head();
  if (next == nullptr) return;
  const std::uint64_t left = lane.schedule->left();
  const std::uint64_t head = next->cost;
  const std::uint64_t wanted = lane.turns.staged_cost();
  if (left >= wanted) return;
  const bool has_for_head = left >= head;
  // By the bucket's own time, however late deliveries are: a bucket that fills up gives nothing more.
  if (has_for_head && lane.schedule->last() - now > options_.horizon.count() / 2) return;
  if (head > lane.numbers().burst) {
    bury_head(lane);
    touch(lane);
    return;
  }
  DrainQuestion& question = lane.question;
  question.kind = DrainQuestion::Kind::reserve;
  question.amount = std::min(wanted - left, std::max(lane.chunk, has_for_head ? 0 : head - left));
  question.what = store::Verb::settle(0, question.amount);
  question.verb = &question.what;
  question.charges = lane.charges;
  question.decisions = lane.decisions;
  if (store_.apply(question, clock_.now()) == store::Progress::answered) answered(question);
}

void Drainer::ask(DrainLane& lane, std::int64_t now) {
  if (lane.question.kind != DrainQuestion::Kind::none || lane.is_granted || lane.turns.head() == nullptr) return;
  if (lane.blocked_until > now) {
    wake_at(lane, lane.blocked_until);
    return;
  }
  DrainQuestion& question = lane.question;
  question.kind = DrainQuestion::Kind::check;
  question.verb = nullptr;
  question.admitted = false;
  question.charges = lane.charges;
  question.decisions = lane.decisions;
  if (store_.check(question, clock_.now()) == store::Progress::answered) answered(question);
}

void Drainer::answered(DrainQuestion& question) {
  DrainLane& lane = question.lane();
  const DrainQuestion::Kind kind = std::exchange(question.kind, DrainQuestion::Kind::none);
  const std::int64_t now = clock_.now().steady;
  if (question.failure != store::Failure::none) {
    hold_off(lane, now);
  } else if (kind == DrainQuestion::Kind::reserve) {
    answered_reserve(question, now);
  } else if (kind == DrainQuestion::Kind::check) {
    answered_check(question, now);
  }
  if (stopping_) {
    if (kind != DrainQuestion::Kind::refund) give_back(lane);
    leave();
    return;
  }
  // Not at once: the caller may be in the midst of this lane.
  touch(lane);
}

void Drainer::answered_reserve(DrainQuestion& question, std::int64_t now) {
  DrainLane& lane = question.lane();
  const Decision& decision = lane.decisions[0];
  // The bucket is full again after reset_after. It has paid its debt, and the tokens are there, a whole burst earlier.
  const std::int64_t full = decision.reset_after.is_never() ? 0 : decision.reset_after.value().count();
  const std::int64_t burst = lane.schedule->length_of(lane.numbers().burst);
  lane.schedule->add(question.amount, now + std::max<std::int64_t>(full - burst, 0));
}

void Drainer::answered_check(DrainQuestion& question, std::int64_t now) {
  DrainLane& lane = question.lane();
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
  if (!fits && lane.turns.head() != nullptr) bury_head(lane);
}

void Drainer::bury_head(DrainLane& lane) {
  const DrainItemPtr item = lane.turns.take_head();
  std::ignore = consumer_->begin(item->tag);
  untried(*item);
  bury(item, "its cost is more than its limit can ever have", 0);
}

/// The store could not answer. What it may have taken is lost, so the rate is kept.
void Drainer::hold_off(DrainLane& lane, std::int64_t now) {
  lane.blocked_until = now + kHoldOff.count();
  wake_at(lane, lane.blocked_until);
}

/// Tokens that nobody will use.
void Drainer::give_back(DrainLane& lane) {
  if (lane.schedule == nullptr || lane.question.kind != DrainQuestion::Kind::none) return;
  const std::uint64_t left = lane.schedule->clear();
  if (left == 0) return;
  DrainQuestion& question = lane.question;
  question.kind = DrainQuestion::Kind::refund;
  question.what = store::Verb::refund(left);
  question.verb = &question.what;
  question.charges = lane.charges;
  question.decisions = lane.decisions;
  if (store_.apply(question, clock_.now()) == store::Progress::answered) answered(question);
}

}  // namespace sluice::queue
