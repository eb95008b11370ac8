#include "queue/admission_json.h"

#include <chrono>

#include "front/http/answer_json.h"
#include "front/http/json_text.h"

namespace sluice::queue {

void encode_admission(const Admission& admission, std::string& out) {
  out += "{\"ticket\":";
  http::append_json_string(out, admission.ticket);
  out += R"(,"state":"queued","place":)";
  http::append_unsigned(out, admission.place);
  http::append_name(out, "expected_in");
  http::append_seconds(out, std::chrono::ceil<std::chrono::milliseconds>(admission.expected));
  out += '}';
}

}  // namespace sluice::queue
