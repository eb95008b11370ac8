// A client tries its server by a charge of its own: when a connection begins, and while the server is not asked.
#include "store/redis/client.h"

namespace sluice::store::redis {

void Client::send_probe() {
  probe_deadline_ = now_ + options_.timeout.count();
  send_of_its_own(probe_check_);
}

// What nobody waits for.
void Client::send_of_its_own(Check& check) {
  Call& call = calls_->take();
  call.is_probe = true;
  [[maybe_unused]] const bool added =
      call.add(check, {&probe_numbers_, 1}, {options_.prefix, options_.groups}, Time{}, probe_deadline_);
  send(call);
}

// Both leave in one write, so that nothing stays where a charge was tried.
void Client::send_trial() {
  link_ = Link::trying;
  link_deadline_ = now_ + kPatience;
  send_probe();
  send_of_its_own(clean_check_);
}

void Client::answered_probe(Call& call, Failure failure) {
  if (failure == Failure::none) failure = call.requests().front().failure;
  const bool served = failure == Failure::none;
  release(call);
  if (link_ == Link::trying) answered_trial(failure);
  probing_ = false;
  if (served && now_ < probe_deadline_) {
    node_.succeeded();
    node_changed(now_);
  } else if (node_.is_open()) {
    retry_at_ = node_.probe_at();
  }
}

// A connection over which no check could succeed is not told of as one.
void Client::answered_trial(Failure failure) {
  const bool is_refusal = failure == Failure::no_permission || failure == Failure::not_authenticated;
  const bool is_passed =
      failure == Failure::none || is_of_one_key(failure) || (options_.trial == Options::Trial::lenient && !is_refusal);
  if (is_passed) {
    link_made();
  } else {
    unfit_ = failure;
  }
}

}  // namespace sluice::store::redis
