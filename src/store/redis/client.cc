#include "store/redis/client.h"

#include <algorithm>
#include <utility>

#include "store/redis/error_kinds.h"

namespace sluice::store::redis {

namespace {
constexpr std::int64_t kLinkPatience = 1'000'000'000;  // ns: to connect, to log in, and for a probe's answer
constexpr std::int64_t kFirstBackoff = 10'000'000;     // ns
}  // namespace

Client::Client(const Endpoint& endpoint, const Script& script, const Options& options, Owner& owner)
    : options_(options),
      owner_(owner),
      connection_(endpoint, script, *this),
      breaker_(options.failures),
      jitter_(options.seed) {}

Call& Client::new_call() {
  if (free_.empty()) {
    calls_.push_back(std::make_unique<Call>());
    free_.push_back(calls_.back().get());
  }
  Call& call = *free_.back();
  free_.pop_back();
  return call;
}

void Client::discard(Call& call) { release(call); }

void Client::release(Call& call) {
  call.check = nullptr;
  call.is_probe = false;
  call.overdue = false;
  ++call.serial;
  call.limits.clear();
  free_.push_back(&call);
}

Failure Client::submit(Call& call, std::int64_t now) {
  now_ = now;
  Failure failure = Failure::none;
  if (breaker_.is_open()) {
    failure = Failure::circuit_open;
  } else if (link_ == Link::down) {
    failure = Failure::unreachable;
    note_failure(failure);
  }
  if (failure != Failure::none) {
    release(call);
    return failure;
  }
  call.deadline = now + options_.timeout.count();
  deadlines_.push_back({&call, call.serial, call.deadline});
  if (link_ == Link::ready) {
    connection_.send(call);
  } else {
    waiting_.push_back(&call);
  }
  return Failure::none;
}

void Client::cancel(const Check& check) {
  for (auto waiting = waiting_.begin(); waiting != waiting_.end(); ++waiting) {
    if ((*waiting)->check != &check) continue;
    Call& call = **waiting;
    waiting_.erase(waiting);
    release(call);
    return;
  }
  for (const auto& call : calls_) {
    if (call->check == &check) call->check = nullptr;
  }
}

std::int64_t Client::next_wakeup() const {
  std::int64_t next = std::min(link_deadline_, retry_at_);
  if (!deadlines_.empty()) next = std::min(next, deadlines_.front().at);
  if (probe_ != nullptr) next = std::min(next, probe_sent_ + kLinkPatience);
  return next;
}

void Client::wake(std::int64_t now) {
  now_ = now;
  while (!deadlines_.empty() && deadlines_.front().at <= now) {
    const Deadline deadline = deadlines_.front();
    deadlines_.pop_front();
    Call& call = *deadline.call;
    if (call.serial != deadline.serial || call.overdue) continue;
    const auto waiting = std::find(waiting_.begin(), waiting_.end(), &call);
    const bool unsent = waiting != waiting_.end();
    if (unsent) waiting_.erase(waiting);
    call.overdue = true;
    note_failure(Failure::timeout);
    finish(call, Failure::timeout);
    // A sent call stays until its reply has come, so that replies keep their order.
    if (unsent) release(call);
  }
  if (link_deadline_ <= now) drop(link_ == Link::connecting ? Failure::unreachable : Failure::timeout);
  if (probe_ != nullptr && probe_sent_ + kLinkPatience <= now) drop(Failure::timeout);
  if (retry_at_ <= now) {
    retry_at_ = kNoWakeup;
    if (link_ == Link::down) {
      wish_ = Wish::connect;
    } else if (link_ == Link::ready && breaker_.is_open() && probe_ == nullptr) {
      send_probe();
    }
  }
}

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
  if (breaker_.is_open()) {
    send_probe();
    return;
  }
  backoff_ = 0;
  tell_state();
  for (Call* call : std::exchange(waiting_, {})) connection_.send(*call);
}

void Client::received(std::string_view bytes, std::int64_t now) {
  now_ = now;
  if (link_ != Link::greeting && link_ != Link::ready) return;
  if (const Failure failure = connection_.feed(bytes); failure != Failure::none) {
    drop(failure, connection_.refusal());
  } else if (doomed_ != Failure::none) {
    drop(doomed_);
  }
  forget_stale_deadlines();
}

void Client::closed(std::int64_t now) {
  now_ = now;
  const bool had_been_up = link_ == Link::ready;
  if (link_ == Link::down) return;
  drop(had_been_up ? Failure::lost : Failure::unreachable);
  wish_ = Wish::nothing;
  // A server that restarts, or closed an idle connection, is tried again at once; nothing else is.
  if (had_been_up && !breaker_.is_open()) wish_ = Wish::connect;
}

void Client::answered(Call& call, const redisReply& reply) {
  const Failure failure = call.is_probe || call.check != nullptr ? owner_.read(call, reply) : Failure::none;
  // A replica stays one; by another connection the name may lead to the server that took over.
  if (failure == Failure::read_only) doomed_ = failure;
  if (call.is_probe) {
    probe_ = nullptr;
    if (failure == Failure::none && !call.overdue) {
      note_success();
    } else {
      reason_ = failure == Failure::none ? Failure::timeout : failure;
      retry_at_ = now_ + retry_wait();
    }
    release(call);
    return;
  }
  if (call.check != nullptr) {
    if (failure == Failure::none) {
      note_success();
    } else if (!is_of_one_key(failure)) {
      note_failure(failure, reply.type == REDIS_REPLY_ERROR ? error_detail(failure, text_of(reply)) : std::string());
    }
    finish(call, failure);
  }
  release(call);
}

void Client::failed(Call& call, Failure failure) {
  if (call.is_probe) {
    probe_ = nullptr;
  } else if (call.check != nullptr) {
    finish(call, failure);
  }
  release(call);
}

void Client::finish(Call& call, Failure failure) {
  // Forgotten first, as the owner may use the check anew at once.
  Check* const check = std::exchange(call.check, nullptr);
  if (check != nullptr) owner_.done(*check, failure);
}

void Client::fail_waiting(Failure failure) {
  for (Call* call : std::exchange(waiting_, {})) {
    finish(*call, failure);
    release(*call);
  }
}

void Client::note_failure(Failure failure, std::string detail) {
  reason_ = failure;
  detail_ = std::move(detail);
  if (!breaker_.failed()) return;
  tell_state();
  if (link_ == Link::ready) retry_at_ = now_ + retry_wait();
  fail_waiting(Failure::circuit_open);
}

void Client::note_success() {
  if (!breaker_.succeeded()) return;
  backoff_ = 0;
  retry_at_ = kNoWakeup;
  tell_state();
}

void Client::tell_state() {
  if (told_ == is_up()) return;
  told_ = is_up();
  owner_.state_changed(*told_, reason_, detail_);
}

// Ends the link: the transport is closed, everything in flight and waiting has failed, a retry is planned.
void Client::drop(Failure failure, std::string detail) {
  link_ = Link::down;
  doomed_ = Failure::none;
  link_deadline_ = kNoWakeup;
  wish_ = Wish::disconnect;
  note_failure(failure, std::move(detail));
  retry_at_ = now_ + retry_wait();
  tell_state();
  connection_.close(failure);
  fail_waiting(Failure::unreachable);
}

std::int64_t Client::retry_wait() {
  const std::int64_t most = options_.probe_interval.count();
  if (breaker_.is_open()) return jitter_.spread(most);
  backoff_ = std::min(most, backoff_ == 0 ? kFirstBackoff : backoff_ * 2);
  return jitter_.spread(backoff_);
}

void Client::send_probe() {
  Call& call = new_call();
  call.is_probe = true;
  owner_.write_probe(call);
  probe_ = &call;
  probe_sent_ = now_;
  call.deadline = now_ + options_.timeout.count();
  deadlines_.push_back({&call, call.serial, call.deadline});
  connection_.send(call);
}

// So that no timer is kept for calls that have ended.
void Client::forget_stale_deadlines() {
  while (!deadlines_.empty() && deadlines_.front().call->serial != deadlines_.front().serial) deadlines_.pop_front();
}

}  // namespace sluice::store::redis
