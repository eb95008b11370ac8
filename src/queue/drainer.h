// Works off what waits in a queue, at the rate of its limits.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "limiter/charge_list.h"
#include "policy/snapshot_holder.h"
#include "queue/broker.h"
#include "queue/deliverer.h"
#include "queue/drain_lane.h"
#include "queue/loop_handle.h"
#include "queue/message.h"
#include "queue/tickets.h"
#include "sluice/clock.h"
#include "store/store.h"

namespace sluice::queue {

struct DrainerOptions {
  std::string queue;                                                  ///< its name
  std::string drainer;                                                ///< this drainer's own, unlike all others'
  std::size_t in_flight = 64;                                         ///< most deliveries at once; from 1
  std::size_t in_hand = 2'000;                                        ///< most messages taken, a partition or lane
  unsigned attempts = 5;                                              ///< then it is a dead letter; from 1
  std::chrono::nanoseconds first_pause = std::chrono::seconds(1);     ///< after a failed delivery; then twice as long
  std::chrono::nanoseconds longest_pause = std::chrono::seconds(30);  ///< at most
  std::chrono::nanoseconds check_timeout = std::chrono::seconds(5);   ///< of a question to the limiter
  std::chrono::nanoseconds horizon = std::chrono::milliseconds(50);   ///< how far ahead tokens are reserved
  std::chrono::nanoseconds drain_timeout = std::chrono::seconds(10);  ///< for what is in flight when it stops
  /// Longest that a message may be tried again before it becomes a dead letter, as a broker's patience ends; 0: no end.
  std::chrono::nanoseconds longest_hold{};
};

/// What it has done; of one drainer.
struct DrainerCounts {
  DrainReport report;
  std::uint64_t retries = 0;
  std::uint64_t cancelled = 0;  ///< dropped, as their clients or an unconfirmed 202 wished
  std::uint64_t already = 0;    ///< skipped, as their tickets say that they were delivered
  std::size_t waiting = 0;      ///< in hand
  std::size_t in_flight = 0;
};

/// The limits are those of the policy and the counters those of the store, so that all drainers of a queue together,
/// and the requests that do not wait, share one rate. A message is never put back: the drainer takes it, reserves
/// tokens for it, waits until they are there, and delivers it. Token buckets are reserved some milliseconds ahead, into
/// debt, so while a queue is not empty newcomers wait behind it; other limits are asked when a message's turn comes.
///
/// Messages of one `key` are delivered in order, one at a time; a failed one holds those behind it until it is
/// delivered or a dead letter. Among the messages in hand the groups take turns (round robin, one message each), and
/// limits don't wait for each other.
///
/// At least once: the broker is told after the delivery. A ticket that says `done` is not delivered again.
///
/// While the store or the tickets cannot be reached nothing is delivered. All on the thread that runs `io`.
class Drainer {
 public:
  /// All must outlive the drainer. `broker` gives the messages and takes dead letters. A new policy is followed with
  /// the next message that comes in, or a second later: by all messages in hand whose limits have other numbers now;
  /// those whose limits are others altogether keep them, as newcomers don't.
  Drainer(boost::asio::io_context& io, DrainerOptions options, policy::SnapshotReader& policy, store::Store& store,
          Tickets& tickets, Broker& broker, Deliverer& deliverer, const Clock& clock);
  ~Drainer();
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;

  /// `broken` is called, once, when nothing can be delivered any more, as fault() says then: it should call stop(), not
  /// before it has returned.
  void start(std::function<void()> broken = {});
  /// Takes nothing more, gives reserved tokens back, waits for what is in flight, and leaves the queue; then `stopped`.
  void stop(std::function<void()> stopped);
  [[nodiscard]] DrainerCounts counts() const;
  /// Why it cannot go on; empty: it can.
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  // Messages come in.
  void fetch();
  void take_in(Delivery delivery);
  void judge(const DrainItemPtr& item);
  [[nodiscard]] DrainLane& lane_of(DrainItem& item);
  void follow_policy();
  void renew(DrainLane& lane);
  // One lane's turn.
  void touch(DrainLane& lane);
  void work_touched();
  void work(DrainLane& lane);
  void stage(DrainLane& lane, std::int64_t now);
  void claim(const DrainItemPtr& item);
  void claimed(const DrainItemPtr& item, bool reached, std::optional<TicketState> before);
  void give_up(const DrainItemPtr& item);
  void give_up_lost();
  void deliver_due(DrainLane& lane);
  void deliver(const DrainItemPtr& item);
  void untried(const DrainItem& item);
  void forget_if_empty(DrainLane& lane);
  // Its tokens: drainer_limits.cc.
  void reserve(DrainLane& lane, std::int64_t now);
  void ask(DrainLane& lane, std::int64_t now);
  void answered(DrainQuestion& question);
  static void answered_reserve(DrainQuestion& question, std::int64_t now);
  void answered_check(DrainQuestion& question, std::int64_t now);
  void bury_head(DrainLane& lane);
  void hold_off(DrainLane& lane, std::int64_t now);
  void give_back(DrainLane& lane);
  // How deliveries end: drainer_endings.cc.
  void ended(const DrainItemPtr& item, const Outcome& outcome);
  void retry(const DrainItemPtr& item, const Outcome& outcome);
  void hinder(const DrainItemPtr& item, const Outcome& outcome);
  void break_off(const Outcome& outcome);
  void begin_end(DrainItem& item);
  void end_end(DrainItem& item);
  void bury(const DrainItemPtr& item, const std::string& reason, int status);
  void tell_unburied(const std::string& why);
  void bury_again(const DrainItemPtr& item, const std::string& reason, int status);
  void drop(const DrainItemPtr& item, TicketState state, std::string reason, int status = 0);
  void end_ticket(const DrainItemPtr& item, TicketState state, std::string reason, int status);
  void finish(const DrainItemPtr& item);
  void release(const DrainItemPtr& item);
  // Time.
  void wake_at(DrainLane& lane, std::int64_t at);
  void arm();
  void fire();
  void report();
  void leave();
  void post(std::function<void()> work) const;
  [[nodiscard]] std::chrono::milliseconds life_of(const Message& message) const;

  boost::asio::io_context& io_;
  const DrainerOptions options_;
  policy::SnapshotReader& policy_;
  store::Store& store_;
  Tickets& tickets_;
  Broker& broker_;
  Deliverer& deliverer_;
  const Clock& clock_;
  const std::shared_ptr<LoopHandle> handle_;
  std::unique_ptr<Consumer> consumer_;

  std::shared_ptr<const policy::Policy> followed_;  ///< what the lanes' limits are of
  limiter::ChargeList charges_;                     ///< for the moment
  std::unordered_map<std::string, std::unique_ptr<DrainLane>> lanes_;
  std::unordered_set<DrainItemPtr> items_;
  std::set<std::pair<std::int64_t, DrainLane*>> wakes_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer report_timer_;
  boost::asio::steady_timer stop_timer_;
  std::size_t in_flight_ = 0;
  std::size_t ending_ = 0;  ///< whose tickets or dead letters are being written
  std::vector<DrainLane*> touched_;
  std::deque<DrainLane*> starved_;   ///< had something due while too much was in flight
  std::size_t claiming_ = 0;         ///< whose tickets are being claimed
  std::int64_t hindered_until_ = 0;  ///< steady: nothing is delivered before
  unsigned hindrances_ = 0;          ///< in a row
  std::int64_t unburied_told_ = 0;   ///< steady: when the log was told that dead letters cannot be written
  std::string fault_;
  std::function<void()> broken_;
  bool stopping_ = false;
  bool left_ = false;
  std::function<void()> stopped_;
  DrainerCounts counts_;
  DrainReport reported_;
};

}  // namespace sluice::queue
