// The decoder of RateLimitRequest: any bytes are a request or an error with a text, and never touch what is beyond
// them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "front/grpc/health_codec.h"
#include "front/grpc/rls_codec.h"

namespace {

/// Every view lies within the message it came from.
void require_within(std::string_view part, std::string_view whole) {
  if (part.empty()) return;
  if (part.data() < whole.data() || part.data() + part.size() > whole.data() + whole.size()) std::abort();
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
  return 0;
}
