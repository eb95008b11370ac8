// Counters of the daemon: one shard per io thread, summed when somebody asks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/limit_stats.h"
#include "policy/policy.h"

namespace sluice::metrics {

class TextFormat;

/// Counters that do not belong to a limit. Names in metrics.cc.
enum class Counter : std::uint8_t {
  grpc_requests,
  grpc_errors,
  http_requests,
  http_errors,
  resp_commands,
  resp_errors,
  connections_opened,
  connections_closed,
  connections_refused,
  protocol_errors,
  tls_failures,
  tls_reloads,
  tls_reloads_refused,
  unknown_domain,
  override_allowed,  ///< by a limit that the request brought: such have no counter of their own
  override_denied,
  throttle_allowed,  ///< by numbers that a RESP command brought
  throttle_denied,
  store_checks,  ///< of the shared store, by itself; the memory store counts nothing
  store_calls,
  store_failures,
  store_timeouts,
  store_cached_denials,
  store_evicted_keys,  ///< by the server, whosever they are
  store_splits,        ///< requests that took several steps, as their keys lie apart
  store_give_backs,    ///< charges of such that were given back
  store_losses,        ///< charges of such that could not be given back
  store_redirects,     ///< calls that a cluster has sent elsewhere
  store_unconfirmed,   ///< calls that too few replicas had in time
  fallback_local,
  fallback_allow,
  fallback_deny,
  verb_refund,  ///< counters that it was done to
  verb_settle,
  verb_penalize,
  verb_reset,
  verb_ban,
  verb_release,
  verb_failures,
  policy_reloads,  ///< good ones; the first loading is none
  policy_reloads_refused,
  spans_exported,  ///< that a collector has taken
  spans_dropped,   ///< for want of room, as it did not take them
  spans_refused,   ///< by it, for ever
  span_export_failures,
  count_
};

/// What a limit said. near_limit is counted beside allowed: less than a fifth of the limit was left.
enum class Verdict : std::uint8_t { allowed, denied, shadow_denied, near_limit, count_ };

/// What is counted by size, in buckets: each twice as far as the one before.
enum class Histogram : std::uint8_t {
  decided_at_once,   ///< ns from the reading of a request to its decision, in memory; one of kSampled is looked at
  decided_by_store,  ///< ″, by the shared store
  store_batch,       ///< requests that share a call of the shared store
  count_
};
inline constexpr std::uint64_t kSampled = 16;

/// One thread's counters. add/count: the owning thread only (a plain load and store each, about 1 ns); reading: any
/// thread.
class Shard {
 public:
  void add(Counter counter, std::uint64_t n = 1) { bump(counters_[static_cast<std::size_t>(counter)], n); }
  /// Counts a verdict for a rule of `policy`'s snapshot. The first time for a limit it takes a lock and allocates.
  void count(const policy::Rule& rule, Verdict verdict, std::uint64_t n = 1) {
    const std::uint32_t id = rule.counted.id;
    RuleCells* cells = id < mine_.size() && mine_[id] != nullptr ? mine_[id] : make_cells(id);
    bump(cells->verdicts[static_cast<std::size_t>(verdict)], n);
  }
  /// Counts a value `weight` times.
  void observe(Histogram histogram, std::int64_t value, std::uint64_t weight = 1);
  /// As observe(decided_at_once) for one of kSampled calls: false, it is not this one's turn.
  [[nodiscard]] bool is_sample() { return ++sample_ % kSampled == 0; }

  /// Buckets of a histogram, not summed up; the last is for all beyond. And the sum of all values.
  static constexpr std::size_t kBuckets = 18;
  struct Buckets {
    std::array<std::uint64_t, kBuckets + 1> counts{};
    std::uint64_t sum = 0;
  };
  void add_to(Histogram histogram, Buckets& buckets) const;
  /// The upper bound of a bucket.
  [[nodiscard]] static std::uint64_t bound(Histogram histogram, std::size_t bucket);

  [[nodiscard]] std::uint64_t value(Counter counter) const {
    return counters_[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
  }
  /// What count() has gathered for a limit id.
  [[nodiscard]] std::uint64_t value(std::uint32_t limit_id, Verdict verdict) const;
  /// Null: hits are not counted by names (Registry::count_limit_stats).
  [[nodiscard]] LimitStats* limit_stats() const { return limit_stats_.get(); }

 private:
  friend class Registry;
  using Cell = std::atomic<std::uint64_t>;
  static void bump(Cell& cell, std::uint64_t n) {
    cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  struct RuleCells {
    std::array<Cell, static_cast<std::size_t>(Verdict::count_)> verdicts{};
  };
  RuleCells* make_cells(std::uint32_t limit_id);

  struct HistogramCells {
    std::array<Cell, kBuckets + 1> counts{};
    Cell sum{0};
  };
  std::array<HistogramCells, static_cast<std::size_t>(Histogram::count_)> histograms_{};
  std::uint64_t sample_ = 0;
  std::array<Cell, static_cast<std::size_t>(Counter::count_)> counters_{};
  /// By CountedLimit::id, so that counters survive a reload. Grown under the mutex; cells never move.
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<RuleCells>> rules_;
  std::vector<RuleCells*> mine_;  ///< the owner's copy of the pointers, read without the lock
  std::unique_ptr<LimitStats> limit_stats_;
};

/// All shards and gauges of the process. Thread-safe.
class Registry {
 public:
  using Read = std::function<double()>;

  /// A shard that lives as long as the registry.
  Shard& add_shard();
  /// Shards made from now on count hits by names, too.
  void count_limit_stats(float near_ratio);
  /// What those have counted.
  [[nodiscard]] LimitStats::Sums limit_stats() const;
  /// A figure that somebody else keeps: `read` is called, on the thread that asks, each time the figures are exposed;
  /// it must be thread-safe and must not call this registry. A counter's never falls and its name ends in _total.
  /// Precondition: `name` is a metric name that is not in use, with its unit in it.
  void add_gauge(std::string name, std::string help, Read read);
  void add_counter(std::string name, std::string help, Read read);

  /// Families that somebody else writes, each time the figures are exposed; as for add_gauge.
  void add_families(std::function<void(TextFormat& text)> write);

  /// The Prometheus text format (version 0.0.4). Verdicts are those of `policy`'s rules (may be null: none), so there
  /// are at most as many series as rules, times verdicts; rules of the same domain and label are summed.
  [[nodiscard]] std::string expose(const policy::Policy* policy) const;
  [[nodiscard]] std::uint64_t total(Counter counter) const;

 private:
  void expose_histograms(TextFormat& text) const;
  void write_histogram(TextFormat& text, std::string_view name, std::pair<std::string_view, std::string_view> label,
                       Histogram histogram, double unit) const;

  struct Outside {
    std::string name;
    std::string help;
    bool gauge = false;
    Read read;
  };
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::optional<float> near_ratio_;
  std::vector<Outside> outside_;
  std::vector<std::function<void(TextFormat& text)>> families_;
};

}  // namespace sluice::metrics
