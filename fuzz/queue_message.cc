// Messages as they lie in a broker, which other programs may write to.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "queue/message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::queue;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Message message;
  std::string reason;
  const Decoded decoded = decode(bytes, message, reason);
  if ((decoded == Decoded::poisoned) == reason.empty()) std::abort();
  if (decoded != Decoded::message) return 0;
  // What was read means the same when it is written and read again.
  Message again;
  if (decode(encode(message), again, reason) != Decoded::message || again != message) std::abort();
  return 0;
}
