// Counters of the daemon: one shard per io thread, summed when somebody asks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace sluice::metrics {

/// Counters that do not belong to a limit. Names in metrics.cc.
enum class Counter : std::uint8_t {
  grpc_requests,
  grpc_errors,
  http_requests,
  http_errors,
  connections_opened,
  connections_closed,
  connections_refused,
  protocol_errors,
  unknown_domain,
  store_checks,
  store_failures,
  store_timeouts,
  fallback_local,
  fallback_allow,
  fallback_deny,
  count_
};

/// What a limit said.
enum class Verdict : std::uint8_t { allowed, denied, shadow_denied, count_ };

/// One thread's counters. add/count: the owning thread only (a plain load and store each, about 1 ns); reading: any
/// thread.
class Shard {
 public:
  void add(Counter counter, std::uint64_t n = 1) { bump(counters_[static_cast<std::size_t>(counter)], n); }
  /// Counts a verdict for a rule of `policy`'s snapshot.
  void count(const policy::Rule& rule, Verdict verdict, std::uint64_t n = 1);
  [[nodiscard]] std::uint64_t value(Counter counter) const {
    return counters_[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
  }

 private:
  friend class Registry;
  using Cell = std::atomic<std::uint64_t>;
  static void bump(Cell& cell, std::uint64_t n) {
    cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  struct RuleCells {
    std::array<Cell, static_cast<std::size_t>(Verdict::count_)> verdicts{};
  };
  std::array<Cell, static_cast<std::size_t>(Counter::count_)> counters_{};
  /// By CountedLimit::id, so that counters survive a reload. Grown under the mutex; cells never move.
  std::mutex mutex_;
  std::vector<std::unique_ptr<RuleCells>> rules_;
  std::vector<RuleCells*> mine_;  ///< the owner's copy of the pointers, read without the lock
};

/// All shards and gauges of the process. Thread-safe.
class Registry {
 public:
  Shard& add_shard();
  /// The Prometheus text format.
  [[nodiscard]] std::string expose(const policy::Policy* policy) const;
  [[nodiscard]] std::uint64_t total(Counter counter) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace sluice::metrics
