// The decoder of RateLimitRequest: any bytes are a request or an error with a text, and never touch what is beyond
// them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "front/grpc/health_codec.h"
#include "front/grpc/limiter_codec.h"
#include "front/grpc/reflection.h"
#include "front/grpc/rls_codec.h"

namespace {

/// Every view lies within the message it came from.
void require_within(std::string_view part, std::string_view whole) {
  if (part.empty()) return;
  if (part.data() < whole.data() || part.data() + part.size() > whole.data() + whole.size()) std::abort();
}

/// Every method of sluice.v1.Limiter.
void decode_limiter(std::string_view message) {
  using namespace sluice::front::grpc;
  static LimiterDecoder decoder;
  for (int method = 0; method <= static_cast<int>(LimiterMethod::cancel); ++method) {
    if (!decoder.decode(static_cast<LimiterMethod>(method), message)) {
      if (decoder.error().empty()) std::abort();
      continue;
    }
    const bool is_hold = method >= static_cast<int>(LimiterMethod::release);
    if (!is_hold) require_within(decoder.request().domain, message);
    if (decoder.request().descriptors.size() > kMaxDescriptors) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::front::grpc;
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  static RequestDecoder decoder;
  if (decoder.decode(message)) {
    const sluice::Request& request = decoder.request();
    require_within(request.domain, message);
    if (request.cost == 0 || request.descriptors.size() > kMaxDescriptors) std::abort();
    for (const sluice::Descriptor& descriptor : request.descriptors) {
      for (const sluice::Entry& entry : descriptor.entries) {
        require_within(entry.key, message);
        require_within(entry.value, message);
      }
    }
  } else if (decoder.error().empty() || decoder.code() == StatusCode::ok) {
    std::abort();
  }
  if (const auto service = decode_health_request(message)) require_within(*service, message);
  std::string answer;
  (void)reflect(message, answer);
  decode_limiter(message);
  return 0;
}
