// What Redis says of tickets and drainers.
#pragma once

#include <hiredis/hiredis.h>

#include <charconv>
#include <cstdint>
#include <string_view>

#include "queue/tickets.h"

namespace sluice::queue {

/// Empty: it is no text.
[[nodiscard]] std::string_view text_of(const redisReply& reply);
/// 0: it is none.
template <typename T>
T number_of(std::string_view text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

[[nodiscard]] std::int64_t utc_us();
/// Of the members of a queue's hash: drainers that have not told of themselves lately are left out.
[[nodiscard]] DrainReport report_of(const redisReply& reply);

}  // namespace sluice::queue
