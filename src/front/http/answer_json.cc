#include "front/http/answer_json.h"

#include "front/http/json_text.h"

namespace sluice::http {

void append_name(std::string& out, std::string_view name) {
  out += ",\"";
  out += name;
  out += "\":";
}

void append_wait(std::string& out, std::string_view name, Wait wait) {
  append_name(out, name);
  if (wait.is_never()) {
    out += "null";
  } else {
    append_seconds(out, wait.value());
  }
}

void append_figures(std::string& out, const policy::Rule& rule, const Decision& decision, bool allowed) {
  append_name(out, "limit");
  append_unsigned(out, decision.limit);
  append_name(out, "remaining");
  append_unsigned(out, decision.remaining);
  if (!allowed) append_wait(out, "retry_after", decision.retry_after);
  append_wait(out, "reset_after", decision.reset_after);
  const bool has_delay = rule.counted.numbers.algorithm == Algorithm::leaky_bucket || decision.delay != Wait();
  if (allowed && has_delay) {
    append_wait(out, "delay", decision.delay);
  }
}

}  // namespace sluice::http
