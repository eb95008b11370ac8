// The part of HttpConnection that has requests decided, and tells what was decided.
#include <utility>

#include "front/http/content_type.h"
#include "front/http/denial_body.h"
#include "front/http/error_json.h"
#include "front/http/http_connection.h"
#include "front/http/json_codec.h"
#include "front/http/verb_codec.h"

namespace sluice::http {

using Problem = limiter::Answer::Problem;

limiter::Call& HttpConnection::call(std::size_t index) {
  if (index == 0) return call_;
  limiter::Call::Owner& owner = *this;
  while (more_calls_.size() < index) {
    more_calls_.push_back(std::make_unique<limiter::Call>(owner, environment_.metrics));
  }
  return *more_calls_[index - 1];
}

limiter::VerbCall& HttpConnection::verb_call(std::size_t index) {
  limiter::VerbCall::Owner& owner = *this;
  while (verb_calls_.size() <= index) {
    verb_calls_.push_back(std::make_unique<limiter::VerbCall>(owner, environment_.metrics));
  }
  return *verb_calls_[index];
}

void HttpConnection::decide(Time now) {
  const std::span<const Request> requests = environment_.scratch.batch.requests();
  if (environment_.context.options.tracer != nullptr && !requests.empty()) begin_span(requests.front().domain, now);
  calls_ = requests.size();
  pending_ = 0;
  for (std::size_t i = 0; i < calls_; ++i) prepare(i, requests[i]);
  if (calls_ > 1 && !are_sound(now)) return;
  for (std::size_t i = 0; i < calls_; ++i) {
    if (run(i, requests[i], now) == store::Progress::pending) ++pending_;
  }
  if (pending_ != 0) {
    state_ = State::deciding;
  } else {
    answer_decided(now);
  }
}

/// False: one of them cannot be decided, so that nothing is done for any of them; that has been answered.
bool HttpConnection::are_sound(Time now) {
  for (std::size_t i = 0; i < calls_; ++i) {
    if (answer_problem(i, now)) continue;
    release_calls();
    return false;
  }
  return true;
}

/// What is asked on this route.
Request HttpConnection::shaped(Request request) const {
  request.peek = route_ == Route::peek;
  request.leases = route_ == Route::acquire || route_ == Route::peek;
  return request;
}

void HttpConnection::prepare(std::size_t index, const Request& request) {
  const std::shared_ptr<const policy::Policy>& policy = environment_.policy.get();
  if (route_ == Route::verb) {
    verb_call(index).prepare(request, environment_.scratch.batch.verbs()[index], policy);
  } else {
    call(index).prepare(shaped(request), policy);
  }
}

store::Progress HttpConnection::run(std::size_t index, const Request& request, Time now) {
  if (route_ == Route::verb) {
    return verb_call(index).run(environment_.scratch.batch.verbs()[index], environment_.store, now);
  }
  return call(index).run(shaped(request), environment_.store, now);
}

void HttpConnection::answered(limiter::Call&) { one_answered(); }

void HttpConnection::answered(limiter::VerbCall&) { one_answered(); }

void HttpConnection::one_answered() {
  if (--pending_ == 0) resume([this](Time now) { answer_decided(now); });
}

void HttpConnection::release_calls() {
  if (pending_ != 0) {
    for (std::size_t i = 0; i < calls_; ++i) {
      if (route_ == Route::verb) {
        verb_call(i).cancel();
      } else {
        call(i).cancel();
      }
    }
    pending_ = 0;
  }
  constexpr std::size_t kept = 4;
  if (more_calls_.size() > kept) more_calls_.resize(kept);
  // A connection that is idle now must not keep a policy that is no longer in force.
  call_.forget();
  for (const auto& more : more_calls_) more->forget();
  if (route_ == Route::verb) verb_calls_.clear();
}

/// True: the answer waits for a leaky bucket's slot. One that would wait for too long is refused.
bool HttpConnection::hold_back(Time now) {
  const bool is_one = route_ == Route::json || route_ == Route::authorize || (route_ == Route::check && !is_array_);
  const std::chrono::nanoseconds hold = is_one ? call_.hold() : std::chrono::nanoseconds(0);
  if (hold.count() == 0) return false;
  if (hold > environment_.context.options.max_hold) {
    call_.refuse_hold();
    return false;
  }
  state_ = State::holding;
  held_until_ = now.steady + hold.count();
  return true;
}

void HttpConnection::end_hold(Time now) {
  state_ = State::reading;
  call_.end_hold();
  answer_decided(now);
  enter_phase(now);
  work(now);
}

void HttpConnection::answer_decided(Time now) {
  if (!are_sound(now)) return;
  if (hold_back(now)) return;
  if (span_ != nullptr) describe_span();
  if (route_ == Route::json) {
    answer_json(now);
  } else if (route_ == Route::peek) {
    answer_peek(now);
  } else if (route_ == Route::verb) {
    answer_verb(now);
  } else if (route_ == Route::authorize) {
    answer_authorize(now);
  } else if (route_ == Route::admit) {
    answer_admit(now);
  } else {
    answer_check(now);
  }
  release_calls();
}

/// False: there is no decision to tell of that request, and the reason has been told.
bool HttpConnection::answer_problem(std::size_t index, Time now) {
  const Problem problem = route_ == Route::verb ? verb_call(index).answer().problem : call(index).answer().problem;
  if (problem == Problem::none) return true;
  if (route_ == Route::json && environment_.context.envoy) {
    environment_.metrics.add(metrics::Counter::http_errors);
    reply_bad_request(now);
    return false;
  }
  const auto refuse = [&](ErrorCode code, std::string_view message) {
    const std::string place = is_array_ ? "[" + std::to_string(index) + "]: " : std::string();
    reply_error(400, code, place + std::string(message), now);
  };
  switch (problem) {
    case Problem::none:
      break;
    case Problem::empty_domain:
      refuse("invalid_request", "domain: must not be empty");
      break;
    case Problem::no_descriptors:
      refuse("invalid_request", "descriptors: must not be empty");
      break;
    case Problem::cost_out_of_range:
      refuse("invalid_request", "the cost must be a whole number from 0 to 1000000000000000");
      break;
    case Problem::needs_lease:
      refuse("needs_lease",
             "the request leads to a limit of concurrency, which has nothing to charge, to refund or to settle: "
             "acquire and release it");
      break;
    case Problem::not_enforced:
      refuse("not_enforced",
             "the request leads to a limit in shadow_mode or quota_mode, which denies nobody by itself and so has no "
             "bans");
      break;
    case Problem::too_long_to_hold:
      refuse("invalid_request", limiter::kTooLongToHold);
      break;
    case Problem::no_policy:
      reply_error(503, "no_policy", "no policy is loaded", now);
      break;
  }
  return false;
}

void HttpConnection::render_headers(const limiter::Answer& answer) {
  const HttpOptions& options = environment_.context.options;
  if (answer.allowed && !options.headers_on_allowed) {
    environment_.scratch.headers.clear();
  } else {
    front::render_headers(answer, options.headers, environment_.scratch.headers);
  }
}

void HttpConnection::answer_check(Time now) {
  std::string& body = environment_.scratch.body;
  body.clear();
  if (is_array_) {
    body += '[';
    for (std::size_t i = 0; i < calls_; ++i) {
      if (i != 0) body += ',';
      encode_check(call(i).answer(), body);
    }
    body += ']';
    reply({.status = 200, .content_type = kJson, .allow = {}, .no_store = false}, now);
    return;
  }
  const HttpOptions& options = environment_.context.options;
  const limiter::Answer& answer = call_.answer();
  unsigned status = 200;
  if (!answer.allowed) status = answer.has_figures ? options.deny_status : options.store_failure_status;
  std::string_view type = kJson;
  if (!answer.allowed && reader_.head().wants_problem) {
    type = kProblemJson;
    encode_check_problem(answer, status, body);
  } else {
    encode_check(answer, body);
  }
  render_headers(answer);
  reply({.status = status, .content_type = type, .allow = {}, .no_store = false}, now,
        environment_.scratch.headers.fields());
}

/// What would be decided is no decision, so its status is that of the question.
void HttpConnection::answer_peek(Time now) {
  std::string& body = environment_.scratch.body;
  body.clear();
  bool failed = false;
  for (std::size_t i = 0; i < calls_; ++i) {
    const limiter::Answer& answer = call(i).answer();
    if (i != 0) body += ',';
    if (answer.failure == store::Failure::none) {
      encode_check(answer, body);
    } else {
      failed = true;
      encode_error(ErrorCode("store_unavailable").text(), store::to_text(answer.failure), body);
    }
  }
  reply_items(failed, now);
}

void HttpConnection::answer_verb(Time now) {
  std::string& body = environment_.scratch.body;
  body.clear();
  bool failed = false;
  for (std::size_t i = 0; i < calls_; ++i) {
    if (i != 0) body += ',';
    encode_verb(verb_call(i).answer(), body);
    failed |= verb_call(i).answer().failed;
  }
  reply_items(failed, now);
}

/// Sends the items in scratch.body, of an array or the only one.
void HttpConnection::reply_items(bool failed, Time now) {
  std::string& body = environment_.scratch.body;
  if (is_array_) {
    body.insert(body.begin(), '[');
    body += ']';
  }
  const unsigned status = failed && !is_array_ ? environment_.context.options.store_failure_status : 200;
  reply({.status = status, .content_type = kJson, .allow = {}, .no_store = true}, now);
}

void HttpConnection::answer_json(Time now) {
  const limiter::Answer& answer = call_.answer();
  unsigned status = 200;
  if (!answer.allowed) status = answer.has_figures ? 429 : environment_.context.options.store_failure_status;
  render_headers(answer);
  std::string& body = environment_.scratch.body;
  body.clear();
  encode_rate_limit_response(answer, environment_.scratch.headers, body);
  // There, the fields are of the body alone.
  if (environment_.context.envoy) environment_.scratch.headers.clear();
  reply({.status = status, .content_type = kJson, .allow = {}, .no_store = false}, now,
        environment_.scratch.headers.fields());
}

void HttpConnection::answer_authorize(Time now) {
  const limiter::Answer& answer = call_.answer();
  render_headers(answer);
  if (answer.allowed) {
    reply_authorized(now);
    return;
  }
  if (!answer.has_figures) {
    reply_error(environment_.context.options.store_failure_status, "store_unavailable",
                "the store of the limits cannot be reached", now);
    return;
  }
  std::string& body = environment_.scratch.body;
  body.clear();
  const std::string_view type = append_denial_body(answer, deny_status_, reader_.head().wants_problem, body);
  reply({.status = deny_status_, .content_type = type, .allow = {}, .no_store = true}, now,
        environment_.scratch.headers.fields());
}

/// With the fields in scratch.headers.
void HttpConnection::reply_authorized(Time now) {
  environment_.scratch.body.clear();
  reply({.status = allow_status_, .content_type = {}, .allow = {}, .no_store = true}, now,
        environment_.scratch.headers.fields());
}

}  // namespace sluice::http
