#include "adapter/render_answer.h"

#include "base/ascii.h"
#include "front/headers.h"
#include "front/http/accept.h"
#include "front/http/denial_body.h"
#include "front/http/error_json.h"

namespace sluice::adapter {
namespace {

using Problem = limiter::Answer::Problem;

LimiterAnswer::Problem shown(Problem problem) {
  switch (problem) {
    case Problem::empty_domain:
      return LimiterAnswer::Problem::empty_domain;
    case Problem::no_descriptors:
      return LimiterAnswer::Problem::no_descriptors;
    case Problem::cost_out_of_range:
      return LimiterAnswer::Problem::cost_out_of_range;
    case Problem::needs_lease:
      return LimiterAnswer::Problem::needs_lease;
    case Problem::none:
    case Problem::no_policy:
    case Problem::not_enforced:      // of bans, which are not asked for here
    case Problem::too_long_to_hold:  // nor leases
      break;
  }
  return LimiterAnswer::Problem::none;
}

std::string_view describe(Problem problem) {
  switch (problem) {
    case Problem::empty_domain:
      return "the keys have no domain";
    case Problem::no_descriptors:
      return "the keys have no descriptors";
    case Problem::cost_out_of_range:
      return "the cost is above 1000000000000000";
    case Problem::needs_lease:
      return "the keys lead to a limit of concurrency, whose lease nobody would release";
    case Problem::none:
    case Problem::no_policy:
    case Problem::not_enforced:      // of bans, which are not asked for here
    case Problem::too_long_to_hold:  // nor leases
      break;
  }
  return "no policy is loaded";
}

}  // namespace

void show_answer(const limiter::Answer& answer, LimiterAnswer& out) {
  out.problem = shown(answer.problem);
  out.allowed = answer.allowed;
  out.known_domain = answer.known_domain;
  out.has_figures = answer.has_figures;
  out.decision = answer.decision;
  if (answer.deciding == nullptr) {
    out.limit.clear();
  } else {
    out.limit = answer.deciding->label();
  }
}

bool wants_problem(const HttpRequest& request) {
  http::AcceptPreference preference;
  for (const HeaderField& field : request.headers) {
    if (equal_ignoring_case(field.name, "accept")) preference.add(field.value);
  }
  return preference.wants_problem();
}

void render_head(const limiter::Answer& answer, const HttpAnswerOptions& options, HttpAnswer& out) {
  show_answer(answer, out.answer);
  out.body.clear();
  out.content_type.clear();
  out.headers.clear();
  out.allowed = answer.allowed && answer.problem == Problem::none;
  out.reason = HttpAnswer::Reason::none;
  out.status = 200;
  out.message.clear();
  if (out.allowed && !options.headers_on_allowed) return;
  front::render_headers(
      answer,
      {.retry_after = options.retry_after, .rate_limit = options.rate_limit, .x_rate_limit = options.x_rate_limit},
      out.headers);
}

void render_denial(const limiter::Answer& answer, const HttpAnswerOptions& options, bool wants_problem,
                   HttpAnswer& out) {
  using Reason = HttpAnswer::Reason;
  if (answer.problem == Problem::no_policy) {
    render_refusal(Reason::unavailable, options.unavailable_status, "no_policy", describe(answer.problem), out);
  } else if (answer.problem != Problem::none) {
    render_refusal(Reason::invalid_keys, 500, "invalid_keys", describe(answer.problem), out);
  } else if (!answer.has_figures) {
    render_refusal(Reason::unavailable, options.unavailable_status, "store_unavailable",
                   "the store of the limits cannot be reached", out);
  } else {
    out.reason = Reason::over_limit;
    out.status = options.deny_status;
    out.message = http::denial_message(answer);
    out.content_type = http::append_denial_body(answer, options.deny_status, wants_problem, out.body);
  }
}

void render_refusal(HttpAnswer::Reason reason, unsigned status, std::string_view code, std::string_view message,
                    HttpAnswer& out) {
  out.allowed = false;
  out.reason = reason;
  out.hold = std::chrono::nanoseconds(0);
  out.message = message;
  out.status = status;
  out.headers.clear();
  out.content_type = "application/json";
  out.body.clear();
  http::encode_error(code, message, out.body);
}

}  // namespace sluice::adapter
