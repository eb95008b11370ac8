// One io thread of the daemon: its event loop and all that it alone uses.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/intrusive/list.hpp>
#include <memory>

#include "metrics/metrics.h"
#include "policy/snapshot_holder.h"
#include "sluice/clock.h"
#include "store/store.h"

namespace sluice::server {

/// A connection of any protocol, owned by itself (shared_ptr held by its pending operations), listed in its worker.
/// All calls happen on the worker's thread.
class Session : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  virtual ~Session() = default;
  /// Finish what is in flight, accept nothing new, then close.
  virtual void drain() = 0;
  /// Close now.
  virtual void abort() = 0;
};

/// Not thread-safe but for what says so: everything runs on the thread that runs `io`.
struct Worker {
  Worker(const policy::SnapshotHolder& policies, const Clock& the_clock, metrics::Shard& the_metrics)
      : policy(policies), clock(the_clock), metrics(the_metrics) {}

  boost::asio::io_context io{1};
  policy::SnapshotReader policy;
  const Clock& clock;
  metrics::Shard& metrics;
  std::unique_ptr<store::Store> store;
  boost::intrusive::list<Session, boost::intrusive::constant_time_size<false>> sessions;
  bool draining = false;
};

}  // namespace sluice::server
