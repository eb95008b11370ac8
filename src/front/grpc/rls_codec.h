// envoy.service.ratelimit.v3 on the wire: protobuf bytes to a Request and an Answer to protobuf bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "front/grpc/status.h"
#include "front/headers.h"
#include "limiter/call.h"
#include "policy/request.h"

namespace sluice::front::grpc {

inline constexpr std::size_t kMaxDescriptors = 100;
inline constexpr std::size_t kMaxEntries = 1000;  ///< of all descriptors of a request together

/// Reads RateLimitRequest. Reusable: a call allocates only while its buffers grow. Not thread-safe.
class RequestDecoder {
 public:
  /// False: `message` is not a request that can be answered, and code() and error() say why. True: request() is set,
  /// valid until the next call and as long as `message` lives (its views point there). Unknown fields are skipped;
  /// `hits_addend` 0 or absent counts 1, a descriptor's own 0 looks without taking.
  [[nodiscard]] bool decode(std::string_view message);
  [[nodiscard]] const Request& request() const { return request_; }
  [[nodiscard]] StatusCode code() const { return code_; }
  [[nodiscard]] std::string_view error() const { return error_; }

 private:
  bool read_request(std::string_view message);
  bool read_descriptor(std::string_view message);
  bool read_override(std::string_view message, Descriptor& descriptor);
  bool fail(StatusCode code, std::string_view text);

  Request request_;
  std::vector<Entry> entries_;
  std::vector<Descriptor> descriptors_;
  std::vector<std::size_t> entry_ends_;  ///< of each descriptor, in entries_
  StatusCode code_ = StatusCode::ok;
  std::string error_;
};

/// Appends `answer` (without a problem) as RateLimitResponse. `headers` is scratch space. What is shown of each limit:
/// its figures, its `name`, `duration_until_reset` in whole seconds rounded up (as envoyproxy/ratelimit gives it; Envoy
/// cuts fractions off). No current_limit where there are no figures: nothing limits the descriptor, it is unlimited
/// (remaining 4294967295), or the store failed.
void encode_response(const limiter::Answer& answer, const HeaderOptions& options, HeaderList& headers,
                     std::string& out);

}  // namespace sluice::front::grpc
