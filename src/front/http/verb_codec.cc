#include "front/http/verb_codec.h"

#include <string_view>

#include "front/http/answer_json.h"
#include "front/http/json_text.h"
#include "store/failure.h"

namespace sluice::http {
namespace {

void append_result(std::string& out, std::string_view result) {
  out += R"({"result":")";
  out += result;
  out += '"';
}

std::string_view without_counter(const limiter::VerbAnswer& answer) {
  return answer.known_domain ? "no_limit" : "unknown_domain";
}

void append_status(std::string& out, const limiter::VerbAnswer& answer, const limiter::VerbStatus& status) {
  if (status.rule == nullptr) {
    append_result(out, without_counter(answer));
    out += '}';
    return;
  }
  const bool failed = status.failure != store::Failure::none;
  append_result(out, status.done ? "done" : failed ? "store_unavailable" : "unlimited");
  append_name(out, "limit_name");
  append_json_string(out, status.rule->label());
  if (status.done) {
    append_name(out, "source");
    out += '"';
    out += source_name(status.decision.source);
    out += '"';
    append_figures(out, *status.rule, status.decision, true);
  } else if (failed) {
    append_name(out, "may_be_done");
    out += store::may_be_done(status.failure) ? "true" : "false";
    append_name(out, "message");
    append_json_string(out, store::to_text(status.failure));
  }
  out += '}';
}

}  // namespace

void encode_verb(const limiter::VerbAnswer& answer, std::string& out) {
  append_result(out, answer.failed ? "store_unavailable" : answer.any_done ? "done" : without_counter(answer));
  append_name(out, "descriptors");
  out += '[';
  for (std::size_t i = 0; i < answer.statuses.size(); ++i) {
    if (i != 0) out += ',';
    append_status(out, answer, answer.statuses[i]);
  }
  out += "]}";
}

}  // namespace sluice::http
