#include "limiter/denial_log.h"

#include <array>
#include <chrono>
#include <random>
#include <string>

#include "base/duration.h"
#include "base/log.h"
#include "policy/escape.h"

namespace sluice::limiter {
namespace {

// Without it, keys that can be guessed could be told from their digests.
const std::string& secret() {
  static const std::string kSecret = [] {
    std::random_device random;
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += std::to_string(random());
    return bytes;
  }();
  return kSecret;
}

std::string digest_of(std::string_view key) {
  std::string digest;
  policy::append_digest(secret() + std::string(key), digest);
  return digest;
}

// Lines of the present second.
bool has_room() {
  static std::atomic<std::int64_t> second{0};
  static std::atomic<std::int64_t> lines{0};
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  if (second.exchange(now, std::memory_order_relaxed) != now) lines.store(0, std::memory_order_relaxed);
  return lines.fetch_add(1, std::memory_order_relaxed) < DenialLog::kMostPerSecond;
}

}  // namespace

void DenialLog::configure(std::uint64_t every, Keys keys) {
  every_.store(every, std::memory_order_relaxed);
  keys_.store(keys, std::memory_order_relaxed);
}

std::string DenialLog::shown(std::string_view key) {
  switch (keys_.load(std::memory_order_relaxed)) {
    case Keys::plain:
      return std::string(key);
    case Keys::hashed:
      return digest_of(key);
    case Keys::none:
      break;
  }
  return {};
}

void DenialLog::write(const policy::Rule& rule, std::string_view key, std::uint64_t cost, const Decision& decision) {
  if (!has_room()) return;
  const std::string shown_key = shown(key);
  const std::string wait =
      decision.retry_after.is_never() ? std::string("never") : to_rounded_text(decision.retry_after.value());
  const std::string one_of = std::to_string(every_.load(std::memory_order_relaxed));
  log::info("denied", {{"domain", rule.domain},
                       {"limit", rule.label()},
                       {"key", shown_key.empty() ? "-" : shown_key},
                       {"cost", std::to_string(cost)},
                       {"retry_after", wait},
                       {"banned", decision.mark == Mark::banned ? "yes" : "no"},
                       {"one_of", one_of}});
}

}  // namespace sluice::limiter
