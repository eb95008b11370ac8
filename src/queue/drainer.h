// Works off what waits in a queue, at the rate of its limits.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/snapshot_holder.h"
#include "queue/broker.h"
#include "queue/deliverer.h"
#include "queue/message.h"
#include "queue/tickets.h"
#include "queue/token_schedule.h"
#include "sluice/clock.h"
#include "store/store.h"

namespace sluice::queue {

struct DrainerOptions {
  std::string queue;                                                  ///< its name
  std::string drainer;                                                ///< this drainer's own, unlike all others'
  std::size_t in_flight = 64;                                         ///< most deliveries at once; from 1
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
  /// All must outlive the drainer. `broker` gives the messages and takes dead letters. The policy is read anew for each
  /// message, so that a reload counts.
  Drainer(boost::asio::io_context& io, DrainerOptions options, policy::SnapshotReader& policy, store::Store& store,
          Tickets& tickets, Broker& broker, Deliverer& deliverer, const Clock& clock);
  ~Drainer();
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;

  void start();
  /// Takes nothing more, gives reserved tokens back, waits for what is in flight, and leaves the queue; then `stopped`.
  void stop(std::function<void()> stopped);
  [[nodiscard]] DrainerCounts counts() const;

 private:
  struct Item;
  struct Group;
  struct Lane;
  class Question;
  class Shared;
  using ItemPtr = std::shared_ptr<Item>;

  void fetch();
  void take_in(Delivery delivery);
  void judge(const ItemPtr& item);
  [[nodiscard]] Lane& lane_of(Item& item);
  void work(Lane& lane);
  void stage(Lane& lane, std::int64_t now);
  void list(Lane& lane, Group& group);
  void free_group(Item& item);
  void put_first(const ItemPtr& item);
  void claim(Lane& lane, const ItemPtr& item);
  void claimed(const ItemPtr& item, bool reached, std::optional<TicketState> before);
  void reserve(Lane& lane, std::int64_t now);
  void ask(Lane& lane, std::int64_t now);
  void answered(Question& question);
  void answered_reserve(Question& question, Lane& lane, std::int64_t now);
  void answered_check(Question& question, Lane& lane, std::int64_t now);
  void hold_off(Lane& lane, std::int64_t now);
  void deliver_due(Lane& lane);
  void deliver(Lane& lane, const ItemPtr& item);
  void ended(const ItemPtr& item, const Outcome& outcome);
  void retry(const ItemPtr& item, const Outcome& outcome);
  void begin_end(Item& item);
  void end_end(Item& item);
  void bury(const ItemPtr& item, std::string reason, int status);
  void bury_again(const ItemPtr& item, const std::string& reason, int status);
  void drop(const ItemPtr& item, TicketState state, std::string reason, int status = 0);
  void finish(const ItemPtr& item);
  void release(const ItemPtr& item);
  void give_back(Lane& lane);
  void forget_if_empty(Lane& lane);
  void wake_at(Lane& lane, std::int64_t at);
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
  const std::shared_ptr<Shared> shared_;  ///< what callbacks of other threads hold, so that late ones find nobody
  std::unique_ptr<Consumer> consumer_;

  std::map<std::string, std::unique_ptr<Lane>, std::less<>> lanes_;
  std::set<ItemPtr> items_;
  std::set<std::pair<std::int64_t, Lane*>> wakes_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer report_timer_;
  boost::asio::steady_timer stop_timer_;
  std::size_t in_flight_ = 0;
  std::size_t ending_ = 0;     ///< whose tickets or dead letters are being written
  std::deque<Lane*> starved_;  ///< had something due while too much was in flight
  bool stopping_ = false;
  bool left_ = false;
  std::function<void()> stopped_;
  DrainerCounts counts_;
  DrainReport reported_;
};

}  // namespace sluice::queue
