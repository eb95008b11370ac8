// Where a daemon's counters are: its memory, and Redis with what stands in while that fails.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "config/settings.h"
#include "metrics/metrics.h"
#include "server/worker.h"
#include "store/ban_store.h"
#include "store/denial_table.h"
#include "store/memory/memory_store.h"
#include "store/readiness.h"
#include "store/redis/nodes.h"
#include "store/store.h"

namespace sluice::server {

/// The owner's thread only, but for what says so. Outlives the workers whose stores it makes; `settings` outlive it.
class Stores {
 public:
  explicit Stores(const config::Settings& settings);
  Stores(const Stores&) = delete;
  Stores& operator=(const Stores&) = delete;

  /// Where the counters are, for the log: never the password.
  [[nodiscard]] std::string name() const;
  /// Makes the memory and shows its figures. Before anything below.
  void start(metrics::Registry& registry);
  /// One worker's. Throws std::runtime_error when it cannot be made.
  [[nodiscard]] std::shared_ptr<store::Store> make(Worker& worker);
  /// Shows the figures of Redis. Once all workers have their stores.
  void expose_shared(metrics::Registry& registry);

  /// The state, or with Redis what is counted while that fails.
  [[nodiscard]] const std::shared_ptr<store::MemoryStore>& memory() const { return memory_; }
  /// What was denied under another policy is no word on this one.
  void forget_denials() { denial_epochs_.forget_all(); }
  /// A line for each server that cannot be asked or whose checks fail, and why; empty: all is well. Any thread.
  [[nodiscard]] std::string trouble() const;
  /// Work on the memory that no request should wait for, in small pieces.
  void tend();

 private:
  /// One Redis, as all workers see it.
  struct Shared {
    std::shared_ptr<store::redis::Nodes> nodes;  ///< null: there is none
    store::Readiness readiness;
    store::BanWatch bans{true};
  };
  [[nodiscard]] std::shared_ptr<store::Store> make_shared_store(Worker& worker, const config::Settings& settings,
                                                                Shared& shared);
  void expose_memory(metrics::Registry& registry);

  const config::Settings& settings_;
  std::shared_ptr<store::MemoryStore> memory_;
  store::DenialEpochs denial_epochs_;
  Shared main_;
  Shared per_second_;  ///< of limits per second
  store::BanWatch memory_bans_{false};
};

}  // namespace sluice::server
