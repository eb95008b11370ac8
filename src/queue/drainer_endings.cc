// How a drainer's deliveries end: done, again, dead letters, tickets.
#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "queue/drainer.h"
#include "queue/retry_pause.h"

namespace sluice::queue {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kBuryAgain = std::chrono::seconds(1);
constexpr nanoseconds kTellUnburied = std::chrono::seconds(30);

}  // namespace

void Drainer::ended(const DrainItemPtr& item, const Outcome& outcome) {
  --in_flight_;
  const bool counts = outcome.kind != Outcome::Kind::hindered && outcome.kind != Outcome::Kind::broken;
  if (counts) {
    hindrances_ = 0;
    if (item->may_be_duplicate || item->attempts > 1) ++counts_.report.duplicates;
  }
  switch (outcome.kind) {
    case Outcome::Kind::delivered:
      ++counts_.report.delivered;
      begin_end(*item);
      // The next of its key need not wait for the ticket.
      item->lane->turns.free(*item);
      end_ticket(item, TicketState::done, "", outcome.status);
      if (!stopping_) touch(*item->lane);
      break;
    case Outcome::Kind::retry:
      retry(item, outcome);
      break;
    case Outcome::Kind::refused:
      bury(item, outcome.reason, outcome.status);
      break;
    case Outcome::Kind::broken:
      break_off(outcome);
      hinder(item, outcome);
      break;
    case Outcome::Kind::hindered:
      hinder(item, outcome);
      break;
  }
  while (!starved_.empty() && in_flight_ < options_.in_flight) {
    DrainLane* lane = starved_.front();
    starved_.pop_front();
    lane->is_starved = false;
    touch(*lane);
  }
  if (stopping_) leave();
}

void Drainer::retry(const DrainItemPtr& item, const Outcome& outcome) {
  const Time now = clock_.now();
  FailedTry failed{
      .attempts = item->attempts, .asked = outcome.retry_after, .held = nanoseconds(now.steady - item->first_try)};
  if (item->message.expires_us != 0) {
    failed.left = std::chrono::microseconds(item->message.expires_us - now.utc / 1'000);
  }
  const auto pause = pause_before_retry(options_, failed);
  if (!pause) {
    bury(item, outcome.reason, outcome.status);
    return;
  }
  ++counts_.retries;
  consumer_->pause(item->tag);
  const std::int64_t again = now.steady + pause->count();
  item->lane->later.emplace(again, item);
  wake_at(*item->lane, again);
}

/// Not the request's fault, so it is as if it had not been tried, and nothing else is for a while.
void Drainer::hinder(const DrainItemPtr& item, const Outcome& outcome) {
  if (--item->attempts > 0) tickets_.add_attempts(item->message.ticket, -1);
  if (item->attempts == 0) item->first_try = 0;
  if (outcome.status != 0) item->may_be_duplicate = item->is_begun = true;
  if (stopping_) {
    untried(*item);
    return;
  }
  const std::int64_t now = clock_.now().steady;
  // Of those that were in flight together one makes the pause.
  if (fault_.empty() && now >= hindered_until_) {
    const nanoseconds pause = pause_after(options_, ++hindrances_);
    hindered_until_ = now + pause.count();
    log::warn("nothing can be delivered now: all wait, and no try counts",
              {{"queue", options_.queue},
               {"reason", outcome.reason},
               {"again_in_seconds", std::to_string(std::chrono::duration<double>(pause).count())}});
  }
  consumer_->pause(item->tag);
  const std::int64_t again = std::max(hindered_until_, now);
  item->lane->later.emplace(again, item);
  wake_at(*item->lane, again);
}

void Drainer::break_off(const Outcome& outcome) {
  if (!fault_.empty()) return;
  fault_ = outcome.reason;
  log::error("nothing can be delivered any more: the drainer stops, and what waits stays in the queue",
             {{"queue", options_.queue}, {"reason", fault_}});
  if (broken_ && !stopping_) post([this] { broken_(); });
}

void Drainer::begin_end(DrainItem& item) {
  if (!std::exchange(item.is_ending, true)) ++ending_;
}

void Drainer::end_end(DrainItem& item) {
  if (std::exchange(item.is_ending, false)) --ending_;
}

/// Makes it a dead letter. The broker is told that the message is done with once the letter is stored.
void Drainer::bury(const DrainItemPtr& item, const std::string& reason, int status) {
  begin_end(*item);
  Publish letter;
  Message& message = item->message;
  message.reason = reason;
  message.attempts = item->attempts;
  letter.payload = encode(message);
  letter.spread = message.group;
  letter.dead = true;
  letter.reason = reason;
  broker_.publish(std::move(letter), [this, handle = handle_, item, reason, status](bool stored, std::string_view why) {
    LoopHandle::post(handle, [this, item, reason, status, stored, why = std::string(why)] {
      if (!stored) {
        tell_unburied(why);
        bury_again(item, reason, status);
        return;
      }
      ++counts_.report.dead;
      drop(item, TicketState::failed, reason, status);
    });
  });
}

/// What stands behind it waits, so somebody should know; not for each try.
void Drainer::tell_unburied(const std::string& why) {
  const std::int64_t now = clock_.now().steady;
  if (unburied_told_ != 0 && now - unburied_told_ < kTellUnburied.count()) return;
  unburied_told_ = now;
  log::warn("a dead letter cannot be written, and what is behind it waits: is its topic or queue there?",
            {{"queue", options_.queue}, {"reason", why}});
}

void Drainer::bury_again(const DrainItemPtr& item, const std::string& reason, int status) {
  const auto timer = std::make_shared<boost::asio::steady_timer>(io_, kBuryAgain);
  timer->async_wait([this, handle = handle_, timer, item, reason, status](const boost::system::error_code&) {
    LoopHandle::post(handle, [this, item, reason, status] {
      if (!stopping_) {
        bury(item, reason, status);
        return;
      }
      end_end(*item);
      leave();
    });
  });
}

void Drainer::drop(const DrainItemPtr& item, TicketState state, std::string reason, int status) {
  begin_end(*item);
  if (state == TicketState::expired) {
    ++counts_.report.expired;
    std::ignore = consumer_->begin(item->tag);
  }
  if (!is_ticket(item->message.ticket)) {
    finish(item);
    return;
  }
  end_ticket(item, state, std::move(reason), status);
}

void Drainer::end_ticket(const DrainItemPtr& item, TicketState state, std::string reason, int status) {
  tickets_.finish(item->message.ticket, state, status, std::move(reason),
                  life_of_ended(item->message.expires_us, clock_.now().utc / 1'000),
                  [this, handle = handle_, item](bool /*reached*/, std::optional<TicketState> /*before*/) {
                    LoopHandle::post(handle, [this, item] { finish(item); });
                  });
}

void Drainer::finish(const DrainItemPtr& item) {
  consumer_->finish(item->tag);
  end_end(*item);
  release(item);
  if (stopping_) leave();
}

/// The drainer has nothing to do with it any more.
void Drainer::release(const DrainItemPtr& item) {
  if (items_.erase(item) == 0 || item->lane == nullptr) return;
  item->lane->turns.release(*item);
  if (!stopping_) touch(*item->lane);
}

}  // namespace sluice::queue
