// Tickets as they lie in Redis, where other programs may write, too.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "queue/ticket_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::queue;
  const std::optional<Ticket> ticket = parse_ticket({reinterpret_cast<const char*>(data), size});
  // What was read means the same when it is written and read again.
  if (ticket && parse_ticket(to_line(*ticket)) != ticket) std::abort();
  return 0;
}
