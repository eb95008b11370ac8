// How tests see that a daemon has read its policy again.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"

namespace sluice::test {

/// The value of a sample on /metrics, as it stands there; empty: there is none.
inline std::string metric(Daemon& daemon, std::string_view sample) {
  const std::string page = HttpClient(daemon.http()).get("/metrics").body;
  const std::string line = "\n" + std::string(sample) + " ";
  const std::size_t at = page.find(line);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + line.size();
  return page.substr(begin, page.find('\n', begin) - begin);
}

/// Waits until the daemon has put so many policies in force after the first ("ok"), or has "refused" so many.
inline bool has_reloaded(Daemon& daemon, const std::string& count, const std::string& result = "ok") {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (metric(daemon, "sluice_policy_reloads_total{result=\"" + result + "\"}") != count) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace sluice::test
