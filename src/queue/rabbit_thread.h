// A thread that keeps a connection to RabbitMQ, and another that watches it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "config/queue_settings.h"
#include "queue/rabbit_link.h"

namespace sluice::queue::rabbit {

/// Runs a loop of the owner's again and again, each time on a new connection, with pauses after failures. librabbitmq
/// has no time limit of its own on what it sends: a call that takes longer than the queue's timeout is ended by the
/// watch, by shutting its socket.
class Thread {
 public:
  class Owner {
   public:
    /// On a link that is open and whose queues are declared. Returns when it is no longer open, or to stop.
    virtual void serve(Link& link) = 0;
    /// The link is gone, or could not be made; `why` for people. Before serve() is called again.
    virtual void lost(const std::string& why) = 0;
    /// On the watch's thread, some times a second.
    virtual void tick() = 0;

   protected:
    ~Owner() = default;
  };

  Thread(const config::QueueSettings& settings, Owner& owner);
  /// stop() must have been called.
  ~Thread();
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void start();
  /// serve() must notice it. Joins both threads.
  void stop();
  [[nodiscard]] bool stopping() const { return stopping_; }
  /// Ends a wait of the link.
  void wake() const;
  /// Takes note of wake(): to be called by serve() after each wait.
  void woken() const;

 private:
  void run();
  void watch();

  const config::QueueSettings& settings_;
  Owner& owner_;
  const int wake_descriptor_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  Link* link_ = nullptr;  ///< under the mutex
  std::thread thread_;
  std::thread watch_;
};

}  // namespace sluice::queue::rabbit
