#include "store/redis/client.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace sluice::store::redis {

namespace {

const Verb kReset = Verb::reset();

// The key that probes charge. No limit of a policy has this identity, as theirs hold a '/'.
CountedLimit make_probe_limit() {
  CountedLimit limit;
  limit.numbers = {.algorithm = Algorithm::token_bucket, .rate = 1'000, .burst = 1'000};
  limit.identity = "probe";
  return limit;
}

}  // namespace

void Client::Owner::redirected(Client& client, Call& call, const Redirect* /*redirect*/) {
  client.fail(call, Failure::server_error);
}

Client::Client(const Hello& hello, const Script& script, const Options& options, Node& node, Owner& owner)
    : hello_(hello),
      options_(options),
      node_(node),
      owner_(owner),
      connection_(hello, script, *this),
      jitter_(options.seed),
      calls_(options.calls != nullptr ? options.calls : std::make_shared<CallPool>()),
      probe_limit_(make_probe_limit()),
      probe_numbers_(*RedisLimit::compile(probe_limit_.numbers)),
      probe_charge_{.limit = &probe_limit_, .key = {}, .cost = 1} {
  probe_check_.charges = {&probe_charge_, 1};
  probe_check_.decisions = {&probe_decision_, 1};
  clean_check_.charges = probe_check_.charges;
  clean_check_.decisions = probe_check_.decisions;
  clean_check_.verb = &kReset;
}

Client::~Client() {
  node_.leave_watch(*this);
  if (is_counted_) node_.link_gone();
}

void Client::set_probe_key(std::string key) {
  probe_key_ = std::move(key);
  probe_charge_.key = probe_key_;
}

// -- calls ------------------------------------------------------------------------------------------------------------

void Client::await(Call& call) {
  const Batch::Request& next = call.requests()[call.next_deadline];
  pending_.push_back({next.deadline, &call, call.serial});
  std::ranges::push_heap(pending_, std::greater{});
}

void Client::pop_pending() {
  std::ranges::pop_heap(pending_, std::greater{});
  pending_.pop_back();
}

Call& Client::open_call(std::uint64_t group, std::int64_t deadline) {
  // Where there are no groups it is the last.
  Call* open = !waiting_.empty() && waiting_.back()->group == group ? waiting_.back() : nullptr;
  if (open == nullptr && group != 0) {
    const auto found = open_.find(group);
    if (found != open_.end() && found->second.call->serial == found->second.serial) open = found->second.call;
  }
  // Deadlines ascend within a call.
  if (open != nullptr && !open->is_sealed && !open->is_sent && open->requests().back().deadline <= deadline) {
    return *open;
  }
  return new_call(group);
}

Call& Client::new_call(std::uint64_t group) {
  Call& call = calls_->take();
  call.group = group;
  waiting_.push_back(&call);
  if (group != 0) open_.insert_or_assign(group, Open{&call, call.serial});
  return call;
}

void Client::release(Call& call) { calls_->release(call); }

void Client::finish_all(Call& call, Failure failure) {
  // By index: the owner may cancel others of the call in between.
  for (std::size_t i = 0; i < call.requests().size(); ++i) {
    Batch::Request& request = call.requests()[i];
    // Forgotten first, as the owner may use the check anew at once.
    Check* const check = std::exchange(request.check, nullptr);
    if (check == nullptr) continue;
    const Failure outcome = failure != Failure::none ? failure : request.failure;
    note_check(outcome);
    owner_.done(*check, outcome, answers_.time());
  }
}

void Client::fail(Call& call, Failure failure) {
  finish_all(call, failure);
  release(call);
}

void Client::give_up(Call& call, Failure failure) {
  if (failure == Failure::cluster_down) note_failure_of(call, failure);
  fail(call, failure);
}

void Client::fail_waiting(Failure failure) {
  open_.clear();
  std::deque<Call*> calls = std::exchange(waiting_, {});
  for (const Held& held : std::exchange(held_, {})) calls.push_back(held.call);
  for (Call* call : calls) {
    call->is_sealed = true;
    fail(*call, failure);
  }
}

Failure Client::obstacle() const {
  if (node_.is_open()) return Failure::circuit_open;
  return link_ == Link::down && wish_ != Wish::connect ? reason_without_link() : Failure::none;
}

// What was not sent has not been charged, and is told so.
Failure Client::reason_without_link() const {
  return link_failure_ == Failure::none || may_be_done(link_failure_) ? Failure::unreachable : link_failure_;
}

Failure Client::submit_until(Check& check, Limits limits, Time caller, std::int64_t now, std::uint64_t group,
                             std::int64_t deadline) {
  now_ = now;
  if (const Failure reason = obstacle(); reason != Failure::none) {
    if (reason != Failure::circuit_open) note_failure(reason, words_for(reason));
    note_check(reason);
    return reason;
  }
  const KeyNaming naming(options_.prefix, options_.groups);
  Call* call = &open_call(group, deadline);
  if (!call->add(check, limits, naming, caller, deadline)) {
    call->is_sealed = true;
    call->is_full = true;
    call = &new_call(group);
    [[maybe_unused]] const bool added = call->add(check, limits, naming, caller, deadline);
  }
  if (call->next_deadline + 1 == call->requests().size()) await(*call);
  return Failure::none;
}

bool Client::cancel(const Check& check) {
  return std::ranges::any_of(pending_, [&](const Pending& pending) {
    return pending.call->serial == pending.serial && pending.call->withdraw(check);
  });
}

void Client::flush(std::int64_t now) {
  now_ = now;
  if (link_ != Link::ready || node_.is_open()) return;
  if (renew_at_ <= now) {
    // Not before all that is on its way has been answered; what waits goes over the new connection.
    if (connection_.in_flight() == 0 && volleys_in_flight_ == 0) renew();
    return;
  }
  while (!waiting_.empty()) {
    Call& first = *waiting_.front();
    if (!first.is_awaited()) {
      waiting_.pop_front();
      release(first);
    } else if (may_leave(first)) {
      send_volley();
    } else {
      return;
    }
  }
}

bool Client::may_leave(const Call& first) const {
  // A volley at a time, as WAIT is of all that its connection has written.
  if (options_.replicas > 0) return volleys_in_flight_ == 0;
  if (volleys_in_flight_ < kFewCalls) return true;
  if (volleys_in_flight_ >= kMostCalls) return false;
  if (first.is_full) return true;
  std::size_t keys = 0;
  for (const Call* call : waiting_) {
    keys += call->keys().size();
    if (keys >= Batch::kMostKeys) return true;
  }
  return false;
}

// What waits, up to the size of one full call.
void Client::send_volley() {
  if (options_.role_interval.count() > 0 && role_at_ <= now_) {
    role_at_ = now_ + options_.role_interval.count();
    if (!connection_.is_waiting()) progress_at_ = now_;  // or a connection that was idle would look stuck
    connection_.ask_role();
  }
  const auto unused = std::ranges::find(volleys_, 0U);
  const auto volley = static_cast<std::size_t>(unused - volleys_.begin());
  if (unused == volleys_.end()) volleys_.push_back(0);
  ++volleys_in_flight_;
  std::size_t keys = 0;
  do {
    Call& call = *waiting_.front();
    waiting_.pop_front();
    if (call.group != 0) forget_open(call);
    keys += call.keys().size();
    call.volley = volley;
    ++volleys_[volley];
    send(call);
    owner_.call_sent(call.sent_requests());
  } while (!waiting_.empty() && keys + waiting_.front()->keys().size() <= Batch::kMostKeys &&
           waiting_.front()->is_awaited());
}

void Client::forget_open(const Call& call) {
  const auto found = open_.find(call.group);
  if (found != open_.end() && found->second.call == &call) open_.erase(found);
}

void Client::send(Call& call) {
  call.is_sent = true;
  call.is_sealed = true;
  if (!connection_.is_waiting()) progress_at_ = now_;
  connection_.send(call, call.is_asking);
}

// A call of a volley is on its way no more.
void Client::landed(Call& call) {
  if (--volleys_[call.volley] == 0) --volleys_in_flight_;
}

// -- calls that move from node to node --------------------------------------------------------------------------------

void Client::adopt(Call& call, bool asking, std::int64_t not_before, std::int64_t now) {
  now_ = now;
  call.is_sealed = true;
  call.is_asking = asking;
  if (const Failure reason = obstacle(); reason != Failure::none) {
    fail(call, reason);
    return;
  }
  if (not_before > now) {
    held_.push_back({not_before, &call});
  } else {
    waiting_.push_front(&call);
  }
  await(call);
}

void Client::hand_over(std::int64_t now) {
  now_ = now;
  open_.clear();
  for (Call* call : std::exchange(waiting_, {})) surrender(*call, nullptr);
  for (const Held& held : std::exchange(held_, {})) surrender(*held.call, nullptr);
}

// It is in none of this client's places any more.
void Client::surrender(Call& call, const Redirect* redirect) {
  if (!call.is_awaited()) {
    release(call);
    return;
  }
  ++call.serial;
  call.is_sent = false;
  call.is_sealed = true;
  call.has_failed = false;
  owner_.redirected(*this, call, redirect);
}

void Client::release_held() {
  for (std::size_t i = 0; i < held_.size();) {
    if (held_[i].until > now_) {
      ++i;
      continue;
    }
    Call& call = *held_[i].call;
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    surrender(call, nullptr);
  }
}

// -- time -------------------------------------------------------------------------------------------------------------

std::int64_t Client::stuck_at() const {
  if (link_ != Link::ready || !connection_.is_waiting()) return kNoWakeup;
  // While it waits for replicas, as long as it was told to, it answers nothing.
  const std::chrono::nanoseconds replicas =
      unconfirmed_.empty() ? std::chrono::nanoseconds(0) : options_.replica_patience;
  // Nor is a connection given up while a check may still be answered on it.
  return progress_at_ + std::max<std::int64_t>(kPatience, options_.timeout.count()) + replicas.count();
}

std::int64_t Client::next_wakeup() const {
  std::int64_t next = std::min({link_deadline_, retry_at_, look_at_, stuck_at()});
  if (connection_.in_flight() == 0 && volleys_in_flight_ == 0) next = std::min(next, renew_at_);
  if (!pending_.empty()) next = std::min(next, pending_.front().deadline);
  for (const Held& held : held_) next = std::min(next, held.until);
  return next;
}

void Client::wake(std::int64_t now) {
  now_ = now;
  expire();
  if (link_deadline_ <= now) {
    if (link_ == Link::connecting) {
      drop(Failure::unreachable, awaited());
    } else {
      drop(Failure::timeout, "connected, but it does not answer");
    }
  }
  // The server, or the way there, has gone silent, whatever the breaker says: another connection may fare better.
  if (stuck_at() <= now) drop(Failure::timeout);
  if (retry_at_ <= now) retry();
  if (look_at_ <= now) look_for_evictions();
  release_held();
  forget_stale();
}

void Client::expire() {
  while (!pending_.empty() && pending_.front().deadline <= now_) {
    const Pending pending = pending_.front();
    pop_pending();
    if (pending.call->serial == pending.serial && !expire(*pending.call)) await(*pending.call);
  }
}

// One that a node has refused again and again has not been carried out, nor one that waited for a connection in vain.
Failure Client::reason_of_expiry(const Call& call) const {
  if (call.is_sent) return Failure::timeout;
  if (call.refusal != Failure::none) return call.refusal;
  return link_ != Link::ready && link_failure_ != Failure::none ? reason_without_link() : Failure::timeout;
}

// True when no deadline is left in it.
bool Client::expire(Call& call) {
  const std::uint64_t serial = call.serial;
  const Failure reason = reason_of_expiry(call);
  bool has_expired = false;
  while (call.next_deadline < call.requests().size()) {
    Batch::Request& request = call.requests()[call.next_deadline];
    if (request.check != nullptr && request.deadline > now_) break;
    ++call.next_deadline;
    if (Check* const check = std::exchange(request.check, nullptr)) {
      // What comes now is another call, so that it counts by itself when it fails, too.
      call.is_sealed = true;
      if (call.is_answered) {
        // Judged, but replicas have yet to confirm.
        owner_.replicas_missed();
        owner_.done(*check, request.failure, answers_.time());
        continue;
      }
      has_expired = true;
      note_check(reason);
      owner_.done(*check, reason, 0);
    }
  }
  const bool is_over = call.is_sealed && call.next_deadline == call.requests().size();
  if (has_expired) note_failure_of(call, reason, words_for(reason));
  if (call.serial != serial) return true;
  // One that was sent stays until its answer has come, so that answers keep their order.
  if (is_over && !call.is_sent) {
    std::erase(waiting_, &call);
    std::erase_if(held_, [&](const Held& held) { return held.call == &call; });
    release(call);
  }
  return call.next_deadline == call.requests().size();
}

// So that no timer is kept for what has ended.
void Client::forget_stale() {
  while (!pending_.empty() && pending_.front().call->serial != pending_.front().serial) pop_pending();
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

}  // namespace sluice::store::redis
