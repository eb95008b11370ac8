// The server file: any bytes are settings or are refused by lines that name the file; never both, never neither.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/resolve.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const sluice::config::File file{.name = "sluice.yaml",
                                  .text = std::string(reinterpret_cast<const char*>(data), size)};
  const sluice::config::Resolved resolved = sluice::config::resolve(file, {}, {});
  for (const std::string& error : resolved.errors) {
    if (!error.starts_with("sluice.yaml")) std::abort();
  }
  if (resolved.sources.size() != sluice::config::all_settings().size()) std::abort();
  return 0;
}
