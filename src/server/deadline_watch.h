// The deadlines of an event loop's sessions, by one timer.
#pragma once

#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive/list.hpp>
#include <chrono>

#include "sluice/clock.h"

namespace sluice::server {

/// A session with deadlines. Leaves the watch by unlink() or with its end.
class Watched : public boost::intrusive::list_base_hook<boost::intrusive::tag<class WatchedTag>,
                                                        boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  /// A tick has passed; the session may end in this call.
  virtual void check_deadline(Time now) = 0;
  /// The event loop ends, and nothing will call the session any more.
  virtual void release() = 0;

 protected:
  Watched() = default;
  Watched(const Watched&) = default;
  Watched& operator=(const Watched&) = default;
  ~Watched() = default;
};

/// A service of the event loop: all its sessions share one. Not thread-safe: everything runs on the thread that runs
/// the io_context.
class DeadlineWatch final : public boost::asio::execution_context::service {
 public:
  using key_type = DeadlineWatch;                       // NOLINT(readability-identifier-naming): Asio's name
  static inline boost::asio::execution_context::id id;  // NOLINT(readability-identifier-naming): Asio's name

  explicit DeadlineWatch(boost::asio::io_context& io);

  /// `clock` must outlive the session.
  void add(Watched& session, const Clock& clock);
  /// A session was unlinked. Stops the timer after the last, so that an idle process sleeps and a loop without work
  /// ends.
  void session_ended();

 private:
  /// Releases all sessions.
  void shutdown() override;
  void arm();
  void sweep();

  /// Deadlines are met this late at most.
  static constexpr std::chrono::milliseconds kTick{250};

  boost::asio::steady_timer timer_;
  bool armed_ = false;
  const Clock* clock_ = nullptr;
  boost::intrusive::list<Watched, boost::intrusive::base_hook<Watched>, boost::intrusive::constant_time_size<false>>
      sessions_;
};

}  // namespace sluice::server
