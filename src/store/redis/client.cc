#include "store/redis/client.h"

#include <algorithm>
#include <charconv>
#include <functional>
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

void Client::Owner::redirected(Client& client, Call& call, const Redirect* /*redirect*/) {
  client.fail(call, Failure::server_error);
}

Client::Client(const Hello& hello, const Script& script, const Options& options, Node& node, Owner& owner)
    : options_(options),
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
    if (check != nullptr) owner_.done(*check, failure != Failure::none ? failure : request.failure, answers_.time());
  }
}

void Client::fail(Call& call, Failure failure) {
  finish_all(call, failure);
  release(call);
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
  return link_ == Link::down && wish_ != Wish::connect ? Failure::unreachable : Failure::none;
}

Failure Client::submit_until(Check& check, Limits limits, Time caller, std::int64_t now, std::uint64_t group,
                             std::int64_t deadline) {
  now_ = now;
  const Failure reason = obstacle();
  if (reason == Failure::unreachable) note_failure(reason);
  if (reason != Failure::none) return reason;
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
    owner_.call_sent();
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

void Client::send_probe() {
  Call& call = calls_->take();
  call.is_probe = true;
  probe_deadline_ = now_ + options_.timeout.count();
  [[maybe_unused]] const bool added =
      call.add(probe_check_, {&probe_numbers_, 1}, {options_.prefix, options_.groups}, Time{}, probe_deadline_);
  send(call);
}

// -- time -------------------------------------------------------------------------------------------------------------

std::int64_t Client::stuck_at() const {
  return link_ == Link::ready && connection_.is_waiting() ? progress_at_ + kLinkPatience : kNoWakeup;
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
  if (link_deadline_ <= now) drop(link_ == Link::connecting ? Failure::unreachable : Failure::timeout);
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

// True when no deadline is left in it.
bool Client::expire(Call& call) {
  const std::uint64_t serial = call.serial;
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
      owner_.done(*check, Failure::timeout, 0);
    }
  }
  const bool is_over = call.is_sealed && call.next_deadline == call.requests().size();
  if (has_expired) note_failure_of(call, Failure::timeout);
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
  ++link_serial_;
  role_at_ = now_ + options_.role_interval.count();
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
  link_deadline_ = now_ + kLinkPatience;
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
  is_replica_ = false;
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
  if (link_ != Link::greeting && link_ != Link::ready) return;
  if (const Failure failure = connection_.feed(bytes); failure != Failure::none) {
    drop(failure, connection_.refusal());
  } else if (is_replica_) {
    drop(Failure::read_only);
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
    drop(Failure::unreachable, std::string(detail));
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
  confirm(true);
  owner_.link_changed(*this, false);
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
  auto& call = static_cast<Call&>(batch);
  progress_at_ = now_;
  if (!call.is_probe && reply.type == REDIS_REPLY_ERROR) {
    if (const auto redirect = parse_redirect(text_of(reply))) {
      landed(call);
      if (!redirect->is_down) node_.succeeded();
      surrender(call, &*redirect);
      return;
    }
  }
  const Failure failure = answers_.read(reply, call, [this](Failure why, std::string_view words) {
    if (is_of_one_key(why)) owner_.bad_key(why, words);
  });
  // A replica stays one; by another connection the name may lead to the server that took over.
  if (failure == Failure::read_only) is_replica_ = true;
  if (call.is_probe) {
    answered_probe(call, failure);
    return;
  }
  note_answer(call, failure, reply);
  const bool has_charged =
      failure == Failure::none && std::ranges::any_of(call.requests(), [](const Batch::Request& request) {
        return request.check != nullptr && request.failure == Failure::none && request.check->admitted;
      });
  if (options_.replicas > 0 && has_charged) {
    call.is_answered = true;
    unconfirmed_.push_back(&call);
    wait_if_due(call.volley);
    return;
  }
  landed(call);
  wait_if_due(call.volley);
  finish_all(call, failure);
  release(call);
}

// Once for the whole volley, and for what a missing script has delayed.
void Client::wait_if_due(std::size_t volley) {
  if (unconfirmed_.empty() || unconfirmed_.size() != volleys_[volley]) return;
  connection_.wait_for_replicas(options_.replicas, options_.replica_patience);
}

void Client::replicated(std::uint64_t replicas) {
  progress_at_ = now_;
  confirm(replicas < options_.replicas);
}

// What has been charged is told, whether or not enough replicas have it: it is never charged again.
void Client::confirm(bool missed) {
  for (Call* call : std::exchange(unconfirmed_, {})) {
    if (missed && call->is_awaited()) owner_.replicas_missed();
    landed(*call);
    finish_all(*call, Failure::none);
    release(*call);
  }
}

// What an answer says of the server; nothing when it came for nobody.
void Client::note_answer(Call& call, Failure failure, const redisReply& reply) {
  if (!call.is_awaited()) return;
  if (failure != Failure::none) {
    note_failure_of(call, failure, reply.type == REDIS_REPLY_ERROR ? error_detail(failure, text_of(reply)) : "");
    return;
  }
  const auto fault = std::ranges::find_if(call.requests(), [](const Batch::Request& request) {
    return request.failure != Failure::none && !is_of_one_key(request.failure);
  });
  if (fault == call.requests().end()) {
    node_.succeeded();
  } else {
    note_failure_of(call, fault->failure);
  }
}

void Client::answered_probe(Call& call, Failure failure) {
  const bool served = failure == Failure::none && call.requests().front().failure == Failure::none;
  release(call);
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
  auto& call = static_cast<Call&>(batch);
  if (!call.is_probe) {
    landed(call);
    finish_all(call, failure);
  }
  release(call);
}

void Client::note_failure(Failure failure, std::string_view detail) {
  node_.failed(failure, detail, now_);
  if (node_.is_open()) node_changed(now_);
}

void Client::note_failure_of(Call& call, Failure failure, std::string_view detail) {
  if (!std::exchange(call.has_failed, true)) note_failure(failure, detail);
}

}  // namespace sluice::store::redis
