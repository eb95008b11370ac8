#include "front/http/denial_body.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "front/http/answer_json.h"
#include "front/http/json_text.h"
#include "policy/denial_text.h"

namespace sluice::http {
namespace {

std::optional<std::uint64_t> seconds_of(Wait wait, std::int64_t least) {
  if (wait.is_never()) return std::nullopt;
  return static_cast<std::uint64_t>(std::max(least, wait.ceil_seconds()));
}

void append_optional(std::string& out, const std::optional<std::uint64_t>& number) {
  if (number) {
    append_unsigned(out, *number);
  } else {
    out += "null";
  }
}

void append_violated(const limiter::Answer& answer, std::string& out) {
  bool first = true;
  for (const limiter::Status& told : answer.statuses) {
    if (!told.over_limit || told.rule == nullptr) continue;
    if (!first) out += ',';
    first = false;
    append_json_string(out, told.rule->label());
  }
}

policy::DenialFigures figures_of(const limiter::Answer& answer) {
  const Decision& decision = answer.decision;
  return {.name = answer.deciding->label(),
          .limit = decision.limit,
          .remaining = decision.remaining,
          .retry_after = seconds_of(decision.retry_after, 1),
          .reset_after = seconds_of(decision.reset_after, 0)};
}

}  // namespace

std::string denial_message(const limiter::Answer& answer) {
  const policy::DenialText& own = answer.deciding->denial.message;
  if (own.empty()) return "rate limit exceeded";
  std::string message;
  own.render(figures_of(answer), false, message);
  return message;
}

std::string_view append_denial_body(const limiter::Answer& answer, unsigned status, bool wants_problem,
                                    std::string& out) {
  const policy::Rule& rule = *answer.deciding;
  const policy::DenialFigures figures = figures_of(answer);
  if (!rule.denial.body.empty()) {
    const bool in_json = rule.denial.content_type.find("json") != std::string::npos;
    rule.denial.body.render(figures, in_json, out);
    return rule.denial.content_type;
  }
  const std::string message = denial_message(answer);
  if (wants_problem) {
    out += R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded")";
    append_name(out, "status");
    append_unsigned(out, status);
    append_name(out, "detail");
    append_json_string(out, message);
    append_name(out, "violated-policies");
    out += '[';
    append_violated(answer, out);
    out += ']';
    append_name(out, "retry_after");
    append_optional(out, figures.retry_after);
    out += '}';
    return "application/problem+json";
  }
  out += R"({"msg":)";
  append_json_string(out, message);
  append_name(out, "retry_after");
  append_optional(out, figures.retry_after);
  out += '}';
  return "application/json";
}

}  // namespace sluice::http
