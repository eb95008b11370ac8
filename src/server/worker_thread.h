// A worker with the thread that runs it, as the accepting thread sees it.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "server/transport.h"
#include "server/worker.h"
#include "tls/channel.h"

namespace sluice::server {

/// Starts serving a connection, on the worker's thread. `client`: the address of who is at the other end, where a
/// balancer has told it; empty: the socket knows.
using StartSession = std::function<void(Worker& worker, Transport transport, std::string client)>;

/// An accepted connection on its way to a worker.
struct Arrival {
  int descriptor = -1;  ///< non-blocking; the worker's from now on
  boost::asio::generic::stream_protocol protocol;
  std::string client;                           ///< as StartSession's
  const StartSession* start = nullptr;          ///< must outlive the worker
  OpenCount* open = nullptr;                    ///< where it is counted, as open already; must outlive the worker
  std::unique_ptr<tls::Channel> tls = nullptr;  ///< null: without
};

/// Public functions: the owner's thread only; they reach the worker through its io_context.
class WorkerThread {
 public:
  using MakeStore = std::function<std::shared_ptr<store::Store>(Worker& worker)>;

  /// Makes the worker and its store; throws what is thrown by that. `ended` is called on the thread at its very end.
  WorkerThread(const policy::SnapshotHolder& policies, const Clock& clock, metrics::Shard& metrics,
               const MakeStore& make_store, std::function<void()> ended);
  /// Starts the thread, once. Throws std::system_error when there can be none.
  void start() {
    thread_ = std::thread([this] { run(); });
  }
  /// Waits for the thread's end, if it was started: call drain() before, and abort() when that takes too long.
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  /// Hands over an accepted connection.
  void assign(Arrival arrival);
  /// Connections handed over that have not ended.
  [[nodiscard]] std::uint64_t connections() const;
  /// Have the worker's store learn what it should know.
  void tend();
  /// Finish what is in flight, then end.
  void drain();
  /// Close every connection now. Only after drain().
  void abort();

 private:
  void run();
  void begin(Arrival arrival);
  void end_soon();

  Worker worker_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::uint64_t assigned_ = 0;
  std::function<void()> ended_;
  std::thread thread_;
};

}  // namespace sluice::server
