// A client's connection: made, lost, dropped, replaced.
#include <algorithm>
#include <string>
#include <utility>

#include "store/redis/advice.h"
#include "store/redis/client.h"

namespace sluice::store::redis {

namespace {
constexpr std::int64_t kFirstBackoff = 10'000'000;  // ns
}  // namespace

void Client::begin_connect(std::int64_t now) {
  wish_ = Wish::nothing;
  retry_at_ = kNoWakeup;
  link_ = Link::connecting;
  link_deadline_ = now + kPatience;
}

void Client::connected(std::int64_t now) {
  now_ = now;
  if (link_ != Link::connecting) return;
  link_ = Link::greeting;
  link_deadline_ = now + kPatience;
  connection_.open();
}

void Client::logged_in() {
  if (options_.trial == Options::Trial::none) {
    link_made();
  } else {
    send_trial();
  }
}

void Client::link_made() {
  ++link_serial_;
  role_at_ = now_ + options_.role_interval.count();
  link_ = Link::ready;
  link_deadline_ = kNoWakeup;
  link_failure_ = Failure::none;
  if (options_.max_age.count() > 0) renew_at_ = now_ + jitter_.spread(options_.max_age.count());
  if (!std::exchange(is_counted_, true)) node_.link_up();
  if (!node_.is_open()) {
    backoff_ = 0;
  } else if (probing_ && options_.trial == Options::Trial::none) {
    send_probe();
  } else {
    retry_at_ = node_.probe_at();
  }
  if (options_.eviction_interval.count() > 0) look_for_evictions();
  owner_.link_changed(*this, true);
}

// A connection of great age is replaced while nothing is on its way: no failure, and no state that anybody is told.
void Client::renew() {
  connection_.close(Failure::lost);
  reconnect();
}

void Client::reconnect() {
  forget_evictions();
  renew_at_ = kNoWakeup;
  retry_at_ = kNoWakeup;
  link_ = Link::connecting;
  link_deadline_ = now_ + kPatience;
  wish_ = Wish::connect;
}

void Client::drop_quietly() {
  connection_.close(Failure::lost);
  confirm(true);
  forget_evictions();
  link_ = Link::down;
  link_deadline_ = kNoWakeup;
  renew_at_ = kNoWakeup;
  wish_ = Wish::disconnect;
  if (std::exchange(is_counted_, false)) node_.link_down(Failure::lost, {});
}

void Client::switch_over(std::int64_t now) {
  now_ = now;
  backoff_ = 0;
  unfit_ = Failure::none;
  probing_ = false;
  if (node_.is_open()) {
    // One client tries the new server, the others follow when it serves.
    node_.probe_soon();
    if (link_ != Link::down) drop_quietly();
    retry();
    return;
  }
  connection_.close(Failure::lost);
  confirm(true);
  reconnect();
}

void Client::received(std::string_view bytes, std::int64_t now) {
  now_ = now;
  if (link_ != Link::greeting && link_ != Link::trying && link_ != Link::ready) return;
  if (const Failure failure = connection_.feed(bytes); failure != Failure::none) {
    drop(failure, connection_.refusal());
  } else if (unfit_ == Failure::read_only && hello_.wants_alone) {
    drop(unfit_, std::string(kNotMaster));
  } else if (unfit_ != Failure::none) {
    drop(unfit_, std::string(words_for(unfit_)));
  }
  forget_stale();
}

void Client::closed(std::int64_t now, std::string_view detail) {
  now_ = now;
  if (link_ == Link::down) return;
  // A server that restarts, or closed an idle connection, is tried again at once, and what was not sent waits for that;
  // nothing else is.
  const bool had_been_up = link_ == Link::ready;
  if (had_been_up) {
    unlink(Failure::lost, std::string(detail));
    wish_ = node_.is_open() ? Wish::nothing : Wish::connect;
  } else {
    std::string words(detail);
    if (words.empty() && link_ == Link::greeting) words = kClosedUnheard;
    if (words.empty() && link_ == Link::trying) words = kClosedAtScript;
    drop(Failure::unreachable, words);
    wish_ = Wish::nothing;
  }
  forget_stale();
}

// Everything in flight has failed, and a retry is planned.
void Client::unlink(Failure failure, const std::string& words) {
  const std::string detail = advised(place_, words);
  say(failure, detail);
  link_failure_ = failure;
  link_ = Link::down;
  link_deadline_ = kNoWakeup;
  renew_at_ = kNoWakeup;
  forget_evictions();
  unfit_ = Failure::none;
  probing_ = false;
  if (std::exchange(is_counted_, false)) {
    node_.link_down(failure, detail);
  } else {
    node_.link_failed(failure, detail);
  }
  note_failure(failure, detail);
  retry_at_ = retry_time();
  connection_.close(failure);
  confirm(true);
  owner_.link_changed(*this, false);
}

// The same, and the transport is to be closed.
void Client::drop(Failure failure, const std::string& detail) {
  wish_ = Wish::disconnect;
  unlink(failure, detail);
  fail_waiting(reason_without_link());
}

std::int64_t Client::retry_time() {
  if (node_.is_open()) return node_.probe_at();
  backoff_ = std::min<std::int64_t>(options_.longest_backoff.count(), backoff_ == 0 ? kFirstBackoff : backoff_ * 2);
  return now_ + jitter_.spread(backoff_);
}

}  // namespace sluice::store::redis
