// sluice drain: works off a queue at the rate of its limits.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "cli/serve.h"

namespace sluice::cli {

struct DrainOptions {
  ServeOptions settings;  ///< as those of serve
  std::string queue;
  std::string deliver;  ///< one of these three
  std::string ca;       ///< for deliver: PEM file of the authorities to trust; empty: those of the system
  std::string exec;
  bool to_stdout = false;
  std::uint64_t in_flight = 64;
  std::uint64_t attempts = 5;
  std::string timeout = "30s";  ///< of a delivery
  std::string pause = "1s";     ///< after the first failure; doubled after each, up to 30 s
  std::string report;           ///< how often the counts are logged; empty: only at the end
};

/// Runs until SIGTERM or SIGINT, then finishes what is in flight. Mistakes on `err`. Returns the exit code: 0 stopped,
/// 1 could not start, or nothing can be delivered any more (the reader of its output has gone).
[[nodiscard]] int drain(const DrainOptions& options, std::ostream& err);

}  // namespace sluice::cli
