// What a limit does with requests beyond it, other than refuse them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sluice::policy {

/// `overflow:` of a limit. A value.
struct Overflow {
  std::string queue;                   ///< name under `queues:` of the server file
  std::uint64_t max_length = 100'000;  ///< 1 … 10^9: requests that may wait
  std::chrono::nanoseconds max_age =
      std::chrono::minutes(10);  ///< 1 ms … 366 d: a request that waited longer is dropped
};

}  // namespace sluice::policy
