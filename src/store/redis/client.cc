#include "store/redis/client.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "store/redis/error_kinds.h"

namespace sluice::store::redis {

namespace {

constexpr std::int64_t kLinkPatience = 1'000'000'000;  // ns: to connect, to log in, and without any answer
constexpr std::int64_t kFirstBackoff = 10'000'000;     // ns

// The key that probes charge. No limit of a policy has this identity, as theirs hold a '/'.
CountedLimit make_probe_limit() {
  CountedLimit limit;
  limit.numbers = {.algorithm = Algorithm::token_bucket, .rate = 1'000, .burst = 1'000};
  limit.identity = "probe";
  return limit;
}

}  // namespace

Client::Client(const Endpoint& endpoint, const Script& script, const Options& options, Node& node, Owner& owner)
    : options_(options),
      node_(node),
      owner_(owner),
      connection_(endpoint, script, *this),
      jitter_(options.seed),
      probe_limit_(make_probe_limit()),
      probe_numbers_(*RedisLimit::compile(probe_limit_.numbers)),
      probe_charge_{.limit = &probe_limit_, .key = {}, .cost = 1} {
  probe_check_.charges = {&probe_charge_, 1};
  probe_check_.decisions = {&probe_decision_, 1};
}

Client::~Client() {
  node_.leave_watch(*this);
  if (is_counted_) node_.link_gone();
}

// -- batches ----------------------------------------------------------------------------------------------------------

Client::Slot& Client::new_slot() {
  if (free_.empty()) {
    slots_.push_back(std::make_unique<Slot>());
    free_.push_back(slots_.back().get());
  }
  Slot& slot = *free_.back();
  free_.pop_back();
  return slot;
}

Client::Slot& Client::open_slot() {
  if (!waiting_.empty() && !waiting_.back()->is_sealed) return *waiting_.back();
  Slot& slot = new_slot();
  waiting_.push_back(&slot);
  pending_.push_back({&slot, slot.serial});
  return slot;
}

void Client::release(Slot& slot) {
  slot.clear();
  slot.is_probe = false;
  slot.is_sent = false;
  slot.is_sealed = false;
  slot.is_full = false;
  slot.has_failed = false;
  slot.next_deadline = 0;
  ++slot.serial;
  free_.push_back(&slot);
}

void Client::finish_all(Slot& slot, Failure failure) {
  // By index: the owner may cancel others of the batch in between.
  for (std::size_t i = 0; i < slot.requests().size(); ++i) {
    Batch::Request& request = slot.requests()[i];
    // Forgotten first, as the owner may use the check anew at once.
    Check* const check = std::exchange(request.check, nullptr);
    if (check != nullptr) owner_.done(*check, failure != Failure::none ? failure : request.failure);
  }
}

void Client::fail_waiting(Failure failure) {
  for (Slot* slot : std::exchange(waiting_, {})) {
    slot->is_sealed = true;
    finish_all(*slot, failure);
    release(*slot);
  }
}

Failure Client::submit(Check& check, Limits limits, Time caller, std::int64_t now) {
  now_ = now;
  if (node_.is_open()) return Failure::circuit_open;
  if (link_ == Link::down && wish_ != Wish::connect) {
    note_failure(Failure::unreachable);
    return Failure::unreachable;
  }
  const std::int64_t deadline = now + options_.timeout.count();
  if (Slot& slot = open_slot(); !slot.add(check, limits, options_.prefix, caller, deadline)) {
    slot.is_sealed = true;
    slot.is_full = true;
    [[maybe_unused]] const bool added = open_slot().add(check, limits, options_.prefix, caller, deadline);
  }
  return Failure::none;
}

void Client::cancel(const Check& check) {
  for (const Pending& pending : pending_) {
    if (pending.slot->serial == pending.serial && pending.slot->withdraw(check)) return;
  }
}

void Client::flush(std::int64_t now) {
  now_ = now;
  if (link_ != Link::ready || node_.is_open()) return;
  if (renew_at_ <= now) {
    // Not before all that is on its way has been answered; what waits goes over the new connection.
    if (connection_.in_flight() == 0) renew();
    return;
  }
  while (!waiting_.empty()) {
    Slot& slot = *waiting_.front();
    const bool is_awaited = slot.is_awaited();
    if (is_awaited && connection_.in_flight() >= (slot.is_full ? kMostCalls : kFewCalls)) return;
    waiting_.pop_front();
    if (is_awaited) {
      send(slot);
      owner_.call_sent();
    } else {
      release(slot);
    }
  }
}

void Client::send(Slot& slot) {
  slot.is_sent = true;
  slot.is_sealed = true;
  if (!connection_.is_waiting()) progress_at_ = now_;
  connection_.send(slot);
}

void Client::send_probe() {
  Slot& slot = new_slot();
  slot.is_probe = true;
  probe_deadline_ = now_ + options_.timeout.count();
  [[maybe_unused]] const bool added =
      slot.add(probe_check_, {&probe_numbers_, 1}, options_.prefix, Time{}, probe_deadline_);
  send(slot);
}

// -- time -------------------------------------------------------------------------------------------------------------

std::int64_t Client::stuck_at() const {
  return link_ == Link::ready && connection_.is_waiting() ? progress_at_ + kLinkPatience : kNoWakeup;
}

std::int64_t Client::next_wakeup() const {
  std::int64_t next = std::min({link_deadline_, retry_at_, look_at_, stuck_at()});
  if (connection_.in_flight() == 0) next = std::min(next, renew_at_);
  if (!pending_.empty()) {
    const Slot& slot = *pending_.front().slot;
    if (slot.next_deadline < slot.requests().size()) {
      next = std::min(next, slot.requests()[slot.next_deadline].deadline);
    }
  }
  return next;
}

void Client::wake(std::int64_t now) {
  now_ = now;
  expire();
  if (link_deadline_ <= now) drop(link_ == Link::connecting ? Failure::unreachable : Failure::timeout);
  // The server, or the way there, has gone silent, whatever the breaker says: another connection may fare better.
  if (stuck_at() <= now) drop(Failure::timeout);
  if (retry_at_ <= now) retry();
  if (look_at_ <= now) look_for_evictions();
  forget_stale();
}

void Client::expire() {
  while (!pending_.empty()) {
    const Pending pending = pending_.front();
    if (pending.slot->serial == pending.serial && !expire(*pending.slot)) return;
    if (!pending_.empty() && pending_.front().slot == pending.slot && pending_.front().serial == pending.serial) {
      pending_.pop_front();
    }
  }
}

// True when no deadline is left in it.
bool Client::expire(Slot& slot) {
  const std::uint64_t serial = slot.serial;
  bool has_expired = false;
  while (slot.next_deadline < slot.requests().size()) {
    Batch::Request& request = slot.requests()[slot.next_deadline];
    if (request.check != nullptr && request.deadline > now_) break;
    ++slot.next_deadline;
    if (Check* const check = std::exchange(request.check, nullptr)) {
      // What comes now is another batch, so that it counts by itself when it fails, too.
      slot.is_sealed = true;
      has_expired = true;
      owner_.done(*check, Failure::timeout);
    }
  }
  const bool is_over = slot.is_sealed && slot.next_deadline == slot.requests().size();
  if (has_expired) note_failure_of(slot, Failure::timeout);
  if (slot.serial != serial) return true;
  // One that was sent stays until its answer has come, so that answers keep their order.
  if (is_over && !slot.is_sent) {
    std::erase(waiting_, &slot);
    release(slot);
  }
  return is_over;
}

// So that no timer is kept for what has ended.
void Client::forget_stale() {
  while (!pending_.empty() && pending_.front().slot->serial != pending_.front().serial) pending_.pop_front();
}

void Client::retry() {
  retry_at_ = kNoWakeup;
  if (node_.is_open()) {
    if (!node_.take_probe(now_)) {
      retry_at_ = node_.probe_at();
      return;
    }
    probing_ = true;
    if (link_ == Link::ready) send_probe();
  }
  if (link_ == Link::down) wish_ = Wish::connect;
}

void Client::node_changed(std::int64_t now) {
  now_ = now;
  if (node_.is_open()) {
    retry_at_ = node_.probe_at();
    fail_waiting(Failure::circuit_open);
    forget_stale();
    return;
  }
  probing_ = false;
  backoff_ = 0;
  retry_at_ = kNoWakeup;
  if (link_ == Link::down) wish_ = Wish::connect;
}

// -- the link ---------------------------------------------------------------------------------------------------------

void Client::begin_connect(std::int64_t now) {
  wish_ = Wish::nothing;
  retry_at_ = kNoWakeup;
  link_ = Link::connecting;
  link_deadline_ = now + kLinkPatience;
}

void Client::connected(std::int64_t now) {
  now_ = now;
  if (link_ != Link::connecting) return;
  link_ = Link::greeting;
  link_deadline_ = now + kLinkPatience;
  connection_.open();
}

void Client::logged_in() {
  link_ = Link::ready;
  link_deadline_ = kNoWakeup;
  if (options_.max_age.count() > 0) renew_at_ = now_ + jitter_.spread(options_.max_age.count());
  if (!std::exchange(is_counted_, true)) node_.link_up();
  if (!node_.is_open()) {
    backoff_ = 0;
  } else if (probing_) {
    send_probe();
  } else {
    retry_at_ = node_.probe_at();
  }
  if (options_.eviction_interval.count() > 0) look_for_evictions();
}

// A connection of great age is replaced while nothing is on its way: no failure, and no state that anybody is told.
void Client::renew() {
  connection_.close(Failure::lost);
  forget_evictions();
  renew_at_ = kNoWakeup;
  link_ = Link::connecting;
  link_deadline_ = now_ + kLinkPatience;
  wish_ = Wish::connect;
}

void Client::received(std::string_view bytes, std::int64_t now) {
  now_ = now;
  if (link_ != Link::greeting && link_ != Link::ready) return;
  if (const Failure failure = connection_.feed(bytes); failure != Failure::none) {
    drop(failure, connection_.refusal());
  } else if (is_replica_) {
    drop(Failure::read_only);
  }
  forget_stale();
}

void Client::closed(std::int64_t now) {
  now_ = now;
  if (link_ == Link::down) return;
  // A server that restarts, or closed an idle connection, is tried again at once, and what was not sent waits for that;
  // nothing else is.
  const bool had_been_up = link_ == Link::ready;
  if (had_been_up) {
    unlink(Failure::lost, {});
    wish_ = node_.is_open() ? Wish::nothing : Wish::connect;
  } else {
    drop(Failure::unreachable);
    wish_ = Wish::nothing;
  }
  forget_stale();
}

// Everything in flight has failed, and a retry is planned.
void Client::unlink(Failure failure, const std::string& detail) {
  link_ = Link::down;
  link_deadline_ = kNoWakeup;
  renew_at_ = kNoWakeup;
  forget_evictions();
  is_replica_ = false;
  probing_ = false;
  if (std::exchange(is_counted_, false)) {
    node_.link_down(failure, detail);
  } else {
    node_.link_failed(failure, detail);
  }
  note_failure(failure, detail);
  retry_at_ = retry_time();
  connection_.close(failure);
}

// The same, and the transport is to be closed.
void Client::drop(Failure failure, const std::string& detail) {
  wish_ = Wish::disconnect;
  unlink(failure, detail);
  fail_waiting(Failure::unreachable);
}

std::int64_t Client::retry_time() {
  if (node_.is_open()) return node_.probe_at();
  backoff_ = std::min<std::int64_t>(options_.longest_backoff.count(), backoff_ == 0 ? kFirstBackoff : backoff_ * 2);
  return now_ + jitter_.spread(backoff_);
}

// -- answers ----------------------------------------------------------------------------------------------------------

void Client::answered(Batch& batch, const redisReply& reply) {
  auto& slot = static_cast<Slot&>(batch);
  progress_at_ = now_;
  const Failure failure = answers_.read(reply, slot, [this](Failure why, std::string_view words) {
    if (is_of_one_key(why)) owner_.bad_key(why, words);
  });
  // A replica stays one; by another connection the name may lead to the server that took over.
  if (failure == Failure::read_only) is_replica_ = true;
  if (slot.is_probe) {
    answered_probe(slot, failure);
    return;
  }
  note_answer(slot, failure, reply);
  finish_all(slot, failure);
  release(slot);
}

// What an answer says of the server; nothing when it came for nobody.
void Client::note_answer(Slot& slot, Failure failure, const redisReply& reply) {
  if (!slot.is_awaited()) return;
  if (failure != Failure::none) {
    note_failure_of(slot, failure, reply.type == REDIS_REPLY_ERROR ? error_detail(failure, text_of(reply)) : "");
    return;
  }
  const auto fault = std::ranges::find_if(slot.requests(), [](const Batch::Request& request) {
    return request.failure != Failure::none && !is_of_one_key(request.failure);
  });
  if (fault == slot.requests().end()) {
    node_.succeeded();
  } else {
    note_failure_of(slot, fault->failure);
  }
}

void Client::answered_probe(Slot& slot, Failure failure) {
  const bool served = failure == Failure::none && slot.requests().front().failure == Failure::none;
  release(slot);
  probing_ = false;
  if (served && now_ < probe_deadline_) {
    node_.succeeded();
    node_changed(now_);
  } else if (node_.is_open()) {
    retry_at_ = node_.probe_at();
  }
}

// One client of the node's looks, and only while it may be asked anyway.
void Client::look_for_evictions() {
  look_at_ = now_ + options_.eviction_interval.count();
  if (node_.is_open() || !node_.take_watch(*this)) return;
  if (!connection_.is_waiting()) progress_at_ = now_;
  connection_.ask_statistics();
}

// The next connection may lead to another server.
void Client::forget_evictions() {
  look_at_ = kNoWakeup;
  evicted_.reset();
  node_.leave_watch(*this);
}

void Client::told_statistics(const redisReply& reply) {
  progress_at_ = now_;
  constexpr std::string_view name = "\nevicted_keys:";
  const std::string_view text = text_of(reply);
  const std::size_t at = text.find(name);
  std::uint64_t evicted = 0;
  if (reply.type != REDIS_REPLY_STRING || at == std::string_view::npos ||
      std::from_chars(text.data() + at + name.size(), text.data() + text.size(), evicted).ec != std::errc{}) {
    look_at_ = kNoWakeup;  // a server, or a user of it, that doesn't tell
    return;
  }
  // It starts again at 0 by CONFIG RESETSTAT.
  if (evicted_ && evicted != *evicted_) owner_.keys_evicted(evicted > *evicted_ ? evicted - *evicted_ : evicted);
  evicted_ = evicted;
}

void Client::failed(Batch& batch, Failure failure) {
  auto& slot = static_cast<Slot&>(batch);
  if (!slot.is_probe) finish_all(slot, failure);
  release(slot);
}

void Client::note_failure(Failure failure, std::string_view detail) {
  node_.failed(failure, detail, now_);
  if (node_.is_open()) node_changed(now_);
}

void Client::note_failure_of(Slot& slot, Failure failure, std::string_view detail) {
  if (!std::exchange(slot.has_failed, true)) note_failure(failure, detail);
}

}  // namespace sluice::store::redis
