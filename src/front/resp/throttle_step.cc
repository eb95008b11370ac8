#include "front/resp/throttle_step.h"

#include "policy/key_encoding.h"

namespace sluice::resp {

ThrottleStep::~ThrottleStep() {
  if (is_pending_) store_.cancel(*this);
}

store::Progress ThrottleStep::start(const Throttle& throttle, Time now) {
  prepare(throttle.key, throttle.bucket);
  dialect_ = throttle.dialect;
  charge_.cost = throttle.cost;
  if (throttle.gives_back) {
    done_ = store::Verb::refund(throttle.cost);
    verb = &done_;
  }
  return run(now);
}

store::Progress ThrottleStep::start_reset(std::string_view key, Time now) {
  prepare(key, Bucket());
  done_ = store::Verb::reset();
  verb = &done_;
  return run(now);
}

void ThrottleStep::prepare(std::string_view key, const Bucket& bucket) {
  is_done = false;
  // A share is counted with a lock, so one of another limit alone is taken.
  if (const auto& limit = limits_.of(bucket); limit_ != limit) limit_ = limit;
  key_.clear();
  policy::KeyWriter writer(key_);
  writer.add_value(key);
  writer.finish();
  charge_ = {.limit = limit_.get(), .key = key_, .cost = 0};
  decision_ = Decision();
  verb = nullptr;
  failure = store::Failure::none;
  charges = {&charge_, 1};
  decisions = {&decision_, 1};
}

store::Progress ThrottleStep::run(Time now) {
  is_pending_ = true;
  const store::Progress progress = verb == nullptr ? store_.check(*this, now) : store_.apply(*this, now);
  if (progress == store::Progress::answered) finish();
  return progress;
}

void ThrottleStep::finish() {
  is_pending_ = false;
  is_done = true;
  if (failure != store::Failure::none) {
    metrics_.add(verb == nullptr ? metrics::Counter::resp_errors : metrics::Counter::verb_failures);
  } else if (verb != nullptr) {
    metrics_.add(verb->kind == store::Verb::Kind::reset ? metrics::Counter::verb_reset : metrics::Counter::verb_refund);
  } else if (charge_.cost != 0) {
    metrics_.add(decision_.allowed ? metrics::Counter::throttle_allowed : metrics::Counter::throttle_denied);
  }
}

void ThrottleStep::complete() {
  finish();
  owner_.step_done();
}

void ThrottleStep::write(ReplyWriter& reply) const {
  if (failure != store::Failure::none) {
    reply.error("ERR the store failed: " + std::string(store::to_text(failure)));
  } else if (verb != nullptr && verb->kind == store::Verb::Kind::reset) {
    reply.simple("OK");
  } else {
    write_decision(dialect_, decision_, reply);
  }
}

}  // namespace sluice::resp
