#include "front/resp/policy_step.h"

#include <cstdint>
#include <string>

#include "front/resp/throttle.h"

namespace sluice::resp {
namespace {

// Null: nothing is wrong.
const char* text_of(limiter::Answer::Problem problem) {
  using Problem = limiter::Answer::Problem;
  switch (problem) {
    case Problem::none:
      return nullptr;
    case Problem::empty_domain:
      return "the domain must not be empty";
    case Problem::no_descriptors:
      return "expected a key and a value";
    case Problem::cost_out_of_range:
      return "the cost is out of range";
    case Problem::needs_lease:
      return "the keys lead to a limit of concurrency, which has nothing to charge, to refund or to settle: use "
             "SLUICE ACQUIRE and RELEASE";
    case Problem::not_enforced:
      return "the keys lead to a limit in shadow_mode or quota_mode, which denies nobody by itself and so has no "
             "bans";
    case Problem::too_long_to_hold:
      return limiter::kTooLongToHold;
    case Problem::no_policy:
      return "no policy is loaded";
  }
  return nullptr;
}

std::string text_of(store::Failure failure) { return "ERR the store failed: " + std::string(store::to_text(failure)); }

}  // namespace

store::Progress PolicyStep::start(const PolicyCommand& command, const std::shared_ptr<const policy::Policy>& policy,
                                  store::Store& store, Time now) {
  store::Progress progress = store::Progress::answered;
  if (command.verb) {
    limiter::VerbCall& call = verb_call_.emplace(static_cast<limiter::VerbCall::Owner&>(*this), metrics_);
    progress = call.start(command.request, *command.verb, policy, store, now);
  } else {
    limiter::Call& call = call_.emplace(static_cast<limiter::Call::Owner&>(*this), metrics_);
    progress = call.start(command.request, policy, store, now);
  }
  is_done = progress == store::Progress::answered;
  return progress;
}

void PolicyStep::answered(limiter::Call& /*call*/) {
  is_done = true;
  owner_.step_done();
}

void PolicyStep::answered(limiter::VerbCall& /*call*/) {
  is_done = true;
  owner_.step_done();
}

void PolicyStep::write(ReplyWriter& reply) const {
  if (const char* problem = text_of(call_ ? call_->answer().problem : verb_call_->answer().problem)) {
    reply.error("ERR " + std::string(problem));
  } else if (call_) {
    write_check(call_->answer(), reply);
  } else {
    write_verb(verb_call_->answer(), reply);
  }
}

void PolicyStep::write_check(const limiter::Answer& answer, ReplyWriter& reply) {
  if (answer.failure != store::Failure::none) {
    reply.error(text_of(answer.failure));
    return;
  }
  if (!answer.allowed && !answer.has_figures) {  // nobody knows when to come back
    reply.error("ERR the store failed: denied by on_store_failure");
    return;
  }
  reply.array(answer.hold ? 3 : 2);
  write_decision(Dialect::cell, answer.decision, reply);
  if (answer.deciding == nullptr) {
    reply.null();
  } else {
    reply.bulk(answer.deciding->label());
  }
  if (answer.hold) reply.bulk(limiter::to_text(*answer.hold));
}

void PolicyStep::write_verb(const limiter::VerbAnswer& answer, ReplyWriter& reply) {
  std::int64_t done = 0;
  for (const limiter::VerbStatus& status : answer.statuses) {
    if (status.failure != store::Failure::none) {
      reply.error(text_of(status.failure));
      return;
    }
    if (status.done) ++done;
  }
  reply.integer(done);
}

}  // namespace sluice::resp
