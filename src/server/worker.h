// One io thread of the daemon: its event loop and all that it alone uses.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/intrusive/list.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "metrics/metrics.h"
#include "policy/snapshot_holder.h"
#include "sluice/clock.h"
#include "store/store.h"

namespace sluice::server {

struct Worker;

/// A connection of any protocol, owned by itself (shared_ptr held by its pending operations), listed in its worker by
/// Worker::admit. All calls happen on the worker's thread.
class Session : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session();
  /// Finish what is in flight and what the peer sends before it can know better, then close.
  virtual void drain() = 0;
  /// Close now.
  virtual void abort() = 0;

 private:
  friend struct Worker;
  Worker* worker_ = nullptr;
};

/// Not thread-safe but for what says so: everything runs on the thread that runs `io`.
struct Worker {
  Worker(const policy::SnapshotHolder& policies, const Clock& the_clock, metrics::Shard& the_metrics)
      : policy(policies), clock(the_clock), metrics(the_metrics) {}

  /// Lists a new session until its end.
  void admit(Session& session) {
    session.worker_ = this;
    sessions.push_back(session);
  }

  boost::asio::io_context io{1};
  policy::SnapshotReader policy;
  const Clock& clock;
  metrics::Shard& metrics;
  /// The memory store is shared by all workers; a Redis store is this worker's alone.
  std::shared_ptr<store::Store> store;
  boost::intrusive::list<Session, boost::intrusive::constant_time_size<false>> sessions;
  bool draining = false;
  /// Called once, when the last session has gone while draining.
  std::function<void()> on_drained;
};

inline Session::~Session() {
  if (worker_ == nullptr) return;
  unlink();
  if (worker_->draining && worker_->sessions.empty() && worker_->on_drained) {
    std::exchange(worker_->on_drained, nullptr)();
  }
}

}  // namespace sluice::server
