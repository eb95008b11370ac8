// One server as the whole process sees it: does it answer, and if not, who tries it again and when.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/failure.h"
#include "store/redis/jitter.h"
#include "store/redis/server_health.h"

namespace sluice::store::redis {

class Client;

/// A circuit breaker that the clients of all io threads share. It opens after `failures` failures in a row, whichever
/// threads see them; then one client at a time tries the server, once an interval; one success closes it for all.
/// Thread-safe. Every `now` is steady time in ns.
class Node {
 public:
  struct Options {
    unsigned failures = 5;                                                     ///< from 1
    std::chrono::nanoseconds probe_interval = std::chrono::milliseconds(500);  ///< ± 20 %
    std::uint64_t seed = 0;                                                    ///< of the jitter
  };
  /// The server can be asked, or not (any longer), and why. `detail`: its own words, and what to mend, if they tell
  /// more. Called once a change, and once when it is first known; while it cannot be asked, for each other reason, too.
  /// Under a lock, so it may not call the node.
  using Tell = std::function<void(bool up, Failure reason, std::string_view detail)>;

  class Listener {
   public:
    /// The breaker has opened or closed. Called on any thread, under a lock: it may only pass it on.
    virtual void node_changed() = 0;

   protected:
    ~Listener() = default;
  };

  Node(const Options& options, Tell tell, ServerHealth::Tell tell_health = [](const ServerHealth::News&) {});
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  /// Not asked, but for probes. Cost: one load.
  [[nodiscard]] bool is_open() const { return open_.load(std::memory_order_acquire); }
  /// Why it was opened last.
  [[nodiscard]] Failure opened_for() const { return opened_for_.load(std::memory_order_relaxed); }
  /// A check of its keys was not answered. `words`: as in Tell.
  void check_failed(Failure reason, std::string_view words, std::int64_t now);
  /// Why its checks fail, or else why it cannot be asked; empty: all is well.
  [[nodiscard]] std::string trouble();
  /// A call to the server has failed.
  void failed(Failure reason, std::string_view detail, std::int64_t now);
  /// A call was answered in time. Cost while all is well: two loads.
  void succeeded() {
    if (in_a_row_.load(std::memory_order_relaxed) != 0 || is_open()) mend();
  }

  /// Checks there, not calls: are they answered?
  [[nodiscard]] ServerHealth& health() { return health_; }

  /// Its cluster's map names it as a master, or not any more; who is not is told of when its last client goes.
  void join() { has_left_.store(false, std::memory_order_relaxed); }
  void leave() { has_left_.store(true, std::memory_order_relaxed); }

  /// When the next probe is due; meaningful while open.
  [[nodiscard]] std::int64_t probe_at() const { return probe_at_.load(std::memory_order_acquire); }
  /// True: a probe is due, and the caller is to make it; the next one is due an interval later.
  [[nodiscard]] bool take_probe(std::int64_t now);

  /// The server may be another one by now: the next probe is due at once.
  void probe_soon();

  /// A client has a connection on which calls can be sent, or has one no more.
  void link_up();
  void link_down(Failure reason, std::string_view detail);
  /// A client that had a connection has ended.
  void link_gone();
  /// A client could not connect.
  void link_failed(Failure reason, std::string_view detail);

  /// May `who` look at what the server counts? One client at a time may, until it leaves.
  [[nodiscard]] bool take_watch(const Client& who);
  void leave_watch(const Client& who);

  void listen(Listener& listener);
  /// After this the listener is not called any more.
  void forget(const Listener& listener);

 private:
  void mend();
  void tell_state(Failure reason, std::string_view detail);
  void notify() const;

  ServerHealth health_;
  const unsigned failures_;
  const std::int64_t probe_interval_;
  const Tell tell_;
  std::atomic<bool> open_{false};
  std::atomic<Failure> opened_for_{Failure::none};
  std::atomic<bool> has_left_{false};
  std::atomic<unsigned> in_a_row_{0};
  std::atomic<std::int64_t> probe_at_{0};
  std::mutex mutex_;  ///< for all below, and for every change of open_
  Jitter jitter_;
  unsigned links_ = 0;
  std::optional<bool> told_;
  std::string told_last_;                  ///< while it cannot be asked: why
  std::string opened_detail_;              ///< beside opened_for_
  std::vector<std::string> told_reasons_;  ///< since it cannot be asked
  const Client* watcher_ = nullptr;
  std::vector<Listener*> listeners_;
};

}  // namespace sluice::store::redis
