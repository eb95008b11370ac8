// sluice.v1.Limiter on the wire: protobuf bytes to a request with its verb, and answers to protobuf bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "limiter/call.h"
#include "limiter/counter_verb.h"
#include "limiter/hold_request.h"
#include "limiter/verb_call.h"
#include "policy/request.h"

namespace sluice::front::grpc {

enum class LimiterMethod : std::uint8_t {
  check,
  peek,
  acquire,
  reserve,
  refund,
  settle,
  penalize,
  reset,
  ban,
  release,
  commit,
  cancel
};

/// The method of a path; nothing: it is another's.
[[nodiscard]] std::optional<LimiterMethod> find_limiter_method(std::string_view path);
[[nodiscard]] std::string_view method_name(LimiterMethod method);
/// Does it change counters otherwise than by a decision, so that not everybody may call it?
[[nodiscard]] bool is_guarded(LimiterMethod method);

/// Reads the requests of proto/sluice/v1/limiter.proto. Reusable. Not thread-safe.
class LimiterDecoder {
 public:
  /// False: it is no request that can be answered, and error() says why (INVALID_ARGUMENT). True: request() and verb()
  /// hold until the next call and as long as `message` lives. Unknown fields are skipped.
  [[nodiscard]] bool decode(LimiterMethod method, std::string_view message);
  [[nodiscard]] const Request& request() const { return request_; }
  /// Nothing: a check of some kind.
  [[nodiscard]] const std::optional<limiter::CounterVerb>& verb() const { return verb_; }
  [[nodiscard]] std::string_view error() const { return error_; }

 private:
  struct Fields;

  bool read(std::string_view message, Fields& fields);
  bool read_descriptor(std::string_view message);
  bool apply(LimiterMethod method, const Fields& fields);
  bool apply_hold(LimiterMethod method, const Fields& fields);
  bool fail(std::string text);

  Request request_;
  std::optional<limiter::CounterVerb> verb_;
  std::vector<Entry> entries_;
  std::vector<Descriptor> descriptors_;
  std::vector<std::size_t> entry_ends_;
  std::unique_ptr<limiter::HoldRequest> hold_;
  std::string error_;
};

/// Appends `answer` (without a problem) as CheckResponse.
void encode_check_response(const limiter::Answer& answer, std::string& out);
/// Appends `answer` (without a problem) as VerbResponse.
void encode_verb_response(const limiter::VerbAnswer& answer, std::string& out);

}  // namespace sluice::front::grpc
