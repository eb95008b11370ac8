#include "front/http/error_json.h"

#include "front/http/answer_json.h"
#include "front/http/json_text.h"

namespace sluice::http {

void encode_error(std::string_view code, std::string_view message, std::string& out) {
  out += R"({"error":)";
  append_json_string(out, code);
  append_name(out, "message");
  append_json_string(out, message);
  out += '}';
}

}  // namespace sluice::http
