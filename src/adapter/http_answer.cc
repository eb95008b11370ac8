#include "sluice/http_answer.h"

#include "adapter/render_answer.h"
#include "front/headers.h"
#include "front/http/accept.h"
#include "policy/rule.h"

namespace sluice {

HttpAnswer http_answer(const Decision& decision, const Limit& limit, std::string_view name, std::string_view accept,
                       const HttpAnswerOptions& options) {
  policy::Rule rule;
  rule.counted.numbers = limit;
  rule.name = name;
  limiter::Answer answer;
  answer.allowed = decision.allowed;
  answer.statuses.push_back({.over_limit = !decision.allowed, .rule = &rule, .decision = decision, .key = {}});
  answer.decision = decision;
  answer.decision.which = 0;
  answer.deciding = &rule;
  answer.has_figures = front::has_figures(decision);
  HttpAnswer out;
  adapter::render_answer(
      answer, options,
      [accept] {
        http::AcceptPreference preference;
        preference.add(accept);
        return preference.wants_problem();
      },
      out);
  return out;
}

}  // namespace sluice
