// Callers on several io threads, as the daemon has them, and what was admitted to them.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "load/checker.h"
#include "metrics/metrics.h"
#include "sluice/clock.h"
#include "store/denial_table.h"
#include "store/fallback_store.h"
#include "store/memory/memory_store.h"
#include "store/readiness.h"
#include "store/redis/redis_store.h"

namespace sluice::testing {

/// A process of its own, as far as Redis can tell: threads that share a breaker, each with the daemon's chain of
/// stores.
class Load {
 public:
  struct Options {
    store::redis::RedisOptions redis;
    Limit numbers;
    OnStoreFailure on_store_failure = OnStoreFailure::deny;
    std::size_t threads = 2;
    std::size_t callers = 8;  ///< a thread
    std::size_t keys = 4;
    std::chrono::microseconds pause{1'000};  ///< of a caller between answer and question
    bool cache_denials = false;
    std::chrono::nanoseconds clock_shift{};  ///< of the callers' clock
  };
  /// What one key was told.
  struct Count {
    std::atomic<std::uint64_t> shared{0};  ///< admitted by Redis
    std::atomic<std::uint64_t> local{0};   ///< admitted by on_store_failure
    std::atomic<std::uint64_t> denied{0};  ///< by Redis
    std::atomic<std::uint64_t> failed{0};  ///< denied by on_store_failure
  };

  explicit Load(const Options& options);
  /// Ends the callers and the threads.
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  /// Lets the callers ask. Waits until every thread has its connection.
  void start();
  /// No caller asks any more, and every question has been answered. How long it all took.
  std::chrono::nanoseconds stop();
  /// Until so many more answers have come from Redis; false: not within ten seconds.
  [[nodiscard]] bool hear(std::uint64_t answers) const;
  /// Until so many more questions were answered by on_store_failure; false: not within ten seconds.
  [[nodiscard]] bool miss(std::uint64_t answers) const;
  /// Until the log has told that every server answers again; false: not within ten seconds.
  [[nodiscard]] bool recover() const;

  /// What was admitted against what may have been, by what the callers saw. Precondition: stopped.
  [[nodiscard]] sluice::load::CheckReport check(const sluice::load::Allowance& allowance = {}) const;
  /// What the callers saw, as several processes share it. Precondition: stopped.
  [[nodiscard]] sluice::load::Checker seen() const;
  [[nodiscard]] const std::deque<Count>& counts() const { return counts_; }
  [[nodiscard]] std::uint64_t sum(std::atomic<std::uint64_t> Count::* member) const;
  /// The longest that any question was without an answer.
  [[nodiscard]] std::chrono::nanoseconds longest_wait() const { return std::chrono::nanoseconds(longest_.load()); }
  [[nodiscard]] Time began() const { return began_; }
  [[nodiscard]] std::uint64_t metric(metrics::Counter counter) const { return registry_.total(counter); }

 private:
  class Caller;
  struct Thread;

  const Options options_;
  store::CountedLimit limit_;
  store::MemoryStore memory_{10'000};
  store::Readiness readiness_;
  store::DenialEpochs epochs_;
  metrics::Registry registry_;
  std::shared_ptr<store::redis::Nodes> nodes_;
  std::vector<std::string> keys_;
  std::deque<Count> counts_;
  std::atomic<std::int64_t> longest_{0};
  std::atomic<bool> asking_{false};
  std::atomic<std::size_t> pending_{0};
  Time began_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace sluice::testing
