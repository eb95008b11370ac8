// Leases and reservations as callers bring them back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "limiter/hold.h"
#include "limiter/hold_request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::limiter;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Hold hold;
  (void)from_text(bytes, hold);
  if (!from_bytes(bytes, hold)) return 0;
  // What was read means the same when it is written and read again.
  const std::string text = to_text(hold);
  Hold again;
  if (!from_text(text, again) || to_text(again) != text) std::abort();
  const HoldRequest request(std::move(again));
  if (request.request().descriptors.size() != hold.descriptors.size()) std::abort();
  return 0;
}
