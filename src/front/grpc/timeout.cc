#include "front/grpc/timeout.h"

#include <cstdint>

namespace sluice::front::grpc {

std::optional<std::chrono::nanoseconds> parse_timeout(std::string_view text) {
  if (text.size() < 2 || text.size() > 9) return std::nullopt;
  std::int64_t unit = 0;
  switch (text.back()) {
    case 'H':
      unit = 3'600'000'000'000;
      break;
    case 'M':
      unit = 60'000'000'000;
      break;
    case 'S':
      unit = 1'000'000'000;
      break;
    case 'm':
      unit = 1'000'000;
      break;
    case 'u':
      unit = 1'000;
      break;
    case 'n':
      unit = 1;
      break;
    default:
      return std::nullopt;
  }
  std::int64_t amount = 0;
  for (const char digit : text.substr(0, text.size() - 1)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    amount = amount * 10 + (digit - '0');
  }
  if (amount > INT64_MAX / unit) return std::chrono::nanoseconds::max();
  return std::chrono::nanoseconds(amount * unit);
}

}  // namespace sluice::front::grpc
