// What a client's server says: to calls, to probes, of replicas and of itself.
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "store/redis/client.h"
#include "store/redis/error_kinds.h"

namespace sluice::store::redis {

void Client::answered(Batch& batch, const redisReply& reply) {
  auto& call = static_cast<Call&>(batch);
  progress_at_ = now_;
  if (call.is_probe && call.is_verb()) {
    release(call);  // what a trial has written is gone, or soon will be
    return;
  }
  if (reply.type == REDIS_REPLY_ERROR) {
    if (const auto redirect = parse_redirect(text_of(reply))) {
      if (call.is_probe) {
        // Alive, though the probe's slot has moved on: calls learn from it where theirs are.
        if (link_ == Link::trying) link_made();
        answered_probe(call, redirect->is_down ? Failure::server_error : Failure::none);
        return;
      }
      landed(call);
      if (!redirect->is_down) node_.succeeded();
      surrender(call, &*redirect);
      return;
    }
  }
  const Failure failure = answers_.read(reply, call, [this](Failure why, std::string_view words) {
    if (is_of_one_key(why)) {
      owner_.bad_key(why, words);
    } else {
      say(why, error_detail(why, words));
    }
  });
  if (failure != Failure::none) {
    say(failure, reply.type == REDIS_REPLY_ERROR ? error_detail(failure, text_of(reply)) : std::string());
  }
  // A replica stays one; by another connection the name may lead to the server that took over.
  if (failure == Failure::read_only) unfit_ = failure;
  if (call.is_probe) {
    answered_probe(call, failure);
    return;
  }
  note_answer(call, failure);
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
void Client::note_answer(Call& call, Failure failure) {
  if (!call.is_awaited()) return;
  if (failure != Failure::none) {
    note_failure_of(call, failure, words_for(failure));
    return;
  }
  const auto fault = std::ranges::find_if(call.requests(), [](const Batch::Request& request) {
    return request.failure != Failure::none && !is_of_one_key(request.failure);
  });
  if (fault == call.requests().end()) {
    node_.succeeded();
  } else {
    note_failure_of(call, fault->failure, words_for(fault->failure));
  }
}

void Client::say(Failure about, std::string_view words) {
  said_.about = about;
  said_.words = words;
}

std::string_view Client::words_for(Failure failure) const {
  return said_.about == failure ? std::string_view(said_.words) : std::string_view();
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

// A key that is wrong, or has no server, says nothing of this one, neither that it fails nor that it answers.
void Client::note_check(Failure failure) {
  if (failure == Failure::none) {
    node_.health().answered(now_);
  } else if (!is_of_one_key(failure) && failure != Failure::slot_unserved) {
    node_.check_failed(failure, words_for(failure), now_);
  }
}

}  // namespace sluice::store::redis
