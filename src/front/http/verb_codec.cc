#include "front/http/verb_codec.h"

#include <string_view>

#include "front/http/answer_json.h"
#include "front/http/json_text.h"
#include "limiter/words.h"
#include "store/failure.h"

namespace sluice::http {
namespace {

void append_result(std::string& out, std::string_view result) {
  out += R"({"result":")";
  out += result;
  out += '"';
}

void append_status(std::string& out, const limiter::VerbAnswer& answer, const limiter::VerbStatus& status) {
  append_result(out, limiter::result_of(answer, status));
  if (status.rule != nullptr) {
    append_name(out, "limit_name");
    append_json_string(out, status.rule->label());
  }
  // A ban says nothing of the limit's own counter.
  if (status.done && answer.kind != limiter::CounterVerb::Kind::ban) {
    append_name(out, "source");
    out += '"';
    out += limiter::source_name(status.decision.source);
    out += '"';
    append_figures(out, *status.rule, status.decision, true);
  } else if (status.failure != store::Failure::none) {
    append_name(out, "may_be_done");
    out += store::may_be_done(status.failure) ? "true" : "false";
    append_name(out, "message");
    append_json_string(out, store::to_text(status.failure));
  }
  out += '}';
}

}  // namespace

void encode_verb(const limiter::VerbAnswer& answer, std::string& out) {
  append_result(out, limiter::result_of(answer));
  append_name(out, "descriptors");
  out += '[';
  for (std::size_t i = 0; i < answer.statuses.size(); ++i) {
    if (i != 0) out += ',';
    append_status(out, answer, answer.statuses[i]);
  }
  out += "]}";
}

}  // namespace sluice::http
