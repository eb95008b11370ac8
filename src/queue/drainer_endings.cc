// How a drainer's deliveries end: done, again, dead letters, tickets.
#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "queue/drainer.h"

namespace sluice::queue {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kBuryAgain = std::chrono::seconds(1);

}  // namespace

void Drainer::ended(const DrainItemPtr& item, const Outcome& outcome) {
  --in_flight_;
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
  item->lane->later.emplace(now + pause.count(), item);
  wake_at(*item->lane, now + pause.count());
}

void Drainer::begin_end(DrainItem& item) {
  if (!std::exchange(item.is_ending, true)) ++ending_;
}

void Drainer::end_end(DrainItem& item) {
  if (std::exchange(item.is_ending, false)) --ending_;
}

/// Makes it a dead letter. The broker is told that the message is done with once the letter is stored.
void Drainer::bury(const DrainItemPtr& item, std::string reason, int status) {
  begin_end(*item);
  Publish letter;
  Message& message = item->message;
  message.reason = reason;
  message.attempts = item->attempts;
  letter.payload = encode(message);
  letter.spread = message.group;
  letter.dead = true;
  letter.reason = reason;
  broker_.publish(std::move(letter), [this, handle = handle_, item, reason, status](bool stored, std::string_view) {
    LoopHandle::post(handle, [this, item, reason, status, stored] {
      if (!stored) {
        bury_again(item, reason, status);
        return;
      }
      ++counts_.report.dead;
      drop(item, TicketState::failed, reason, status);
    });
  });
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
  tickets_.finish(item->message.ticket, state, status, std::move(reason), kTicketAfterlife,
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
