// The queues of a daemon: where requests beyond their limit wait, and the drainers of those in its own memory.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "config/settings.h"
#include "metrics/metrics.h"
#include "policy/snapshot_holder.h"
#include "queue/desk.h"
#include "queue/drain_runner.h"
#include "store/memory/memory_store.h"

namespace sluice::server {

/// The owner's thread only. What is given must outlive it.
class WaitingRoom {
 public:
  WaitingRoom(const config::Settings& settings, const policy::SnapshotHolder& policies);
  ~WaitingRoom();
  WaitingRoom(const WaitingRoom&) = delete;
  WaitingRoom& operator=(const WaitingRoom&) = delete;

  /// Makes the queues, which begin to connect. What is wrong with their settings, one line each. A broker that cannot
  /// be reached is no mistake: its queue is not ready until it can.
  [[nodiscard]] std::vector<std::string> prepare();
  /// Null: there are no queues.
  [[nodiscard]] queue::Desk* desk() const { return desk_.get(); }
  /// `memory`: the daemon's counters, where they are not in Redis.
  void start(const std::shared_ptr<store::MemoryStore>& memory, metrics::Registry& registry);
  /// Drains what it delivers itself, within the drain time-out, and ends the queues.
  void stop();

 private:
  struct Drain {
    std::unique_ptr<queue::DrainRunner> runner;
    std::thread thread;
  };
  void start_drain(const config::QueueSettings& queue, const std::shared_ptr<store::MemoryStore>& memory);

  const config::Settings& settings_;
  const policy::SnapshotHolder& policies_;
  std::unique_ptr<queue::Desk> desk_;
  std::vector<Drain> drains_;
};

}  // namespace sluice::server
