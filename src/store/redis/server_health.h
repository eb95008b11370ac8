// Are checks at one server answered? As all io threads together see it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "store/failure.h"

namespace sluice::store::redis {

/// Tells when checks begin to fail, and when they are answered again. Thread-safe. Every `now` is steady time in ns.
class ServerHealth {
 public:
  enum class Change : std::uint8_t {
    failing,    ///< checks fail, for that reason; while they do, also for another that somebody has to mend
    answering,  ///< and do so no more; so many have failed
    left        ///< the server is not asked any more; so many have failed since they began to
  };
  struct News {
    Change change;
    Failure reason = Failure::none;
    /// The server's, and what to look at; empty where the reason tells all.
    std::string_view words{};  // NOLINT(readability-redundant-member-init): gcc warns of initializers without it
    std::uint64_t failed = 0;
  };
  /// Called once a change, under a lock.
  using Tell = std::function<void(const News& news)>;

  explicit ServerHealth(Tell tell) : tell_(std::move(tell)) {}

  /// So many checks have failed.
  void failed(std::uint64_t checks, Failure reason, std::string_view words, std::int64_t now);
  /// A check was answered. Cost while all is well: a load. One that fails now and then among many that don't is told
  /// once, until none has failed for a second.
  void answered(std::int64_t now) {
    if (is_failing()) settle(now);
  }
  /// What has failed until now cannot fail any more.
  void mended();
  /// Nobody asks there any more.
  void left();
  [[nodiscard]] bool is_failing() const { return failing_.load(std::memory_order_relaxed); }
  /// Why it fails, as it was told last; empty: it doesn't.
  [[nodiscard]] std::string trouble();

 private:
  void settle(std::int64_t now);
  [[nodiscard]] std::uint64_t end();

  const Tell tell_;
  std::atomic<bool> failing_{false};
  std::atomic<std::uint64_t> failed_{0};  ///< since it does
  std::atomic<std::uint32_t> told_{0};    ///< for which reasons, a bit each
  std::atomic<std::int64_t> last_failure_{0};
  std::mutex mutex_;  ///< for changes of failing_, and for trouble_
  std::string trouble_;
};

}  // namespace sluice::store::redis
