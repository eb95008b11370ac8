// The JSON reader and both decoders above it. What they take must be JSON to Boost.JSON, too, and mean the same.
#include <array>
#include <boost/json/src.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "front/http/check_codec.h"
#include "front/http/error_json.h"
#include "front/http/json_codec.h"
#include "front/http/json_reader.h"
#include "sluice/limit.h"

namespace {

using sluice::Descriptor;
using sluice::Entry;
using sluice::Request;
using sluice::http::DecodeFault;
using sluice::http::JsonReader;
using sluice::http::JsonType;
using sluice::http::RequestBatch;

constexpr int kDepth = 32;  // as Boost.JSON's

void require(bool holds) {
  if (!holds) std::abort();
}

/// Reads any value.
bool walk(JsonReader& reader, int depth) {
  if (depth > kDepth) return false;
  std::string_view text;
  bool truth = false;
  switch (reader.peek()) {
    case JsonType::object:
      if (!reader.begin_object()) return false;
      while (reader.next_member(text)) {
        if (!walk(reader, depth + 1)) return false;
      }
      return !reader.failed();
    case JsonType::array:
      if (!reader.begin_array()) return false;
      while (reader.next_element()) {
        if (!walk(reader, depth + 1)) return false;
      }
      return !reader.failed();
    case JsonType::string:
      return reader.read_string(text);
    case JsonType::number:
      return reader.read_number(text);
    case JsonType::boolean:
      return reader.read_bool(truth);
    case JsonType::null:
      return reader.read_null();
    case JsonType::none:
      break;
  }
  return false;
}

void compare_readers(std::string_view text) {
  std::string arena;
  JsonReader reader(text, arena);
  const bool ours = walk(reader, 0) && reader.finish();
  if (!ours && reader.failed()) {
    require(!reader.fault().empty());
    require(reader.place().starts_with("line "));
  }
  boost::json::error_code error;
  boost::json::parse_options options;
  options.max_depth = kDepth + 1;
  boost::json::parse({text.data(), text.size()}, error, {}, options);
  // Where numbers leave a double's range Boost.JSON may give up; too deep is too deep to both, give or take one.
  if (error == boost::json::error::exponent_overflow || error == boost::json::error::too_deep) return;
  if (!ours && !reader.failed()) return;
  require(ours == !error);
}

/// An entry that was read in the short form must be there by Boost.JSON's reading.
void compare_check(std::string_view text) {
  RequestBatch batch;
  DecodeFault fault;
  bool is_array = false;
  if (!sluice::http::decode_check(text, batch, is_array, fault)) {
    require(!fault.code.empty() && !fault.message.empty());
    return;
  }
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse({text.data(), text.size()}, error);
  if (error == boost::json::error::exponent_overflow) return;
  require(!error);
  require(value.is_array() == is_array);
  std::size_t index = 0;
  for (const Request& request : batch.requests()) {
    const boost::json::value& one = is_array ? value.as_array().at(index++) : value;
    const boost::json::string& domain = one.at("domain").as_string();
    require(request.domain == std::string_view(domain.data(), domain.size()));
    require(request.descriptors.size() == one.at("descriptors").as_array().size());
    for (std::size_t i = 0; i < request.descriptors.size(); ++i) {
      const boost::json::value& descriptor = one.at("descriptors").as_array().at(i);
      if (!descriptor.is_object() || request.descriptors[i].cost || descriptor.as_object().contains("entries"))
        continue;
      for (const Entry& entry : request.descriptors[i].entries) {
        const boost::json::string& told = descriptor.at({entry.key.data(), entry.key.size()}).as_string();
        require(entry.value == std::string_view(told.data(), told.size()));
      }
    }
  }
}

/// What a verb takes has the descriptors that a check would have; the rest of it is in range.
void compare_verbs(std::string_view text) {
  using Form = sluice::http::Form;
  for (const Form form : {Form::refund, Form::settle, Form::penalize, Form::reset, Form::ban, Form::release,
                          Form::commit, Form::cancel}) {
    RequestBatch batch;
    DecodeFault fault;
    bool is_array = false;
    if (!sluice::http::decode_form(text, form, batch, is_array, fault)) {
      require(!fault.code.empty() && !fault.message.empty());
      continue;
    }
    require(batch.verbs().size() == batch.requests().size());
    for (const sluice::limiter::CounterVerb& verb : batch.verbs()) {
      require(verb.reserved <= sluice::kMaxTokens && verb.actual <= sluice::kMaxTokens);
      require(form == Form::settle || form == Form::commit || form == Form::cancel ||
              (verb.reserved == 0 && verb.actual == 0));
      const bool has_time =
          form == Form::refund || form == Form::settle || form == Form::commit || form == Form::cancel;
      require(!verb.at || has_time);
      require(verb.time.count() >= 0 && (form == Form::ban || verb.time.count() == 0));
    }
    for (const Request& request : batch.requests()) {
      require(!request.domain.empty() && !request.descriptors.empty());
      for (const Descriptor& descriptor : request.descriptors) {
        require(!descriptor.cost || form == Form::refund || form == Form::penalize || form == Form::release);
      }
    }
  }
}

void compare_proto(std::string_view text) {
  RequestBatch batch;
  DecodeFault fault;
  if (!sluice::http::decode_rate_limit_request(text, batch, fault)) {
    require(!fault.code.empty() && !fault.message.empty());
    return;
  }
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse({text.data(), text.size()}, error);
  require(!error || error == boost::json::error::exponent_overflow);
  require(batch.requests().size() == 1 && batch.requests().front().cost >= 1);
}

/// What is written for any text must be read back as it was.
void write_and_read(std::string_view text) {
  std::string out;
  sluice::http::encode_error("code", text, out);
  boost::json::error_code error;
  boost::json::parse_options options;
  options.allow_invalid_utf8 = true;  // that is the text's
  const boost::json::value value = boost::json::parse(out, error, {}, options);
  require(!error);
  const boost::json::string& message = value.at("message").as_string();
  require(text == std::string_view(message.data(), message.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  compare_readers(text);
  compare_check(text);
  compare_verbs(text);
  compare_proto(text);
  write_and_read(text);
  return 0;
}
