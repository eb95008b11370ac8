// Whose turn it is among the messages that are charged alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "queue/message.h"

namespace sluice::queue {

struct DrainGroup;
struct DrainLane;

/// A message in a drainer's hands.
struct DrainItem {
  std::uint64_t tag = 0;
  Message message;
  DrainLane* lane = nullptr;
  DrainGroup* group = nullptr;
  std::uint64_t cost = 1;
  bool is_claimed = false;   ///< its ticket says that its delivery is about to begin
  bool holds_group = false;  ///< nothing else of its group may go
  bool is_ending = false;    ///< the ticket or the dead letter is being written
  bool may_be_duplicate = false;
  bool is_begun = false;  ///< a try that does not count may have been seen all the same
  unsigned attempts = 0;
  std::int64_t first_try = 0;  ///< steady
};
using DrainItemPtr = std::shared_ptr<DrainItem>;

/// Those that stand in one line: of one key, or of one that was over its limit.
struct DrainGroup {
  std::string name;
  bool is_ordered = false;
  bool is_busy = false;  ///< ordered, and one of it is in flight, in a pause, or about to end
  bool waits_listed = false;
  bool ready_listed = false;
  std::size_t items = 0;
  std::uint64_t ready_cost = 0;
  std::deque<DrainItemPtr> waiting;  ///< not looked at yet
  std::deque<DrainItemPtr> ready;    ///< staged: their tickets are claimed, or being claimed
};

/// Two rounds, in each of which the groups take turns, one message each: the first chooses what is staged, so that
/// tickets are claimed a little before their messages' time; the second what is delivered. Staged messages of one group
/// stay in order; of an ordered one only one is out at a time, and meanwhile those behind it don't count as staged, so
/// that they keep no other group's out. Pure; not thread-safe.
class DrainTurns {
 public:
  void put(const DrainItemPtr& item, const std::string& group, bool is_ordered);
  /// Stages the next; null: nothing waits.
  [[nodiscard]] DrainItemPtr stage_next();
  /// A staged one has got its ticket and may be delivered.
  void claimed(const DrainItemPtr& item);
  /// A staged one is not wanted. It stays counted until release(). False: it is not staged.
  bool withdraw(const DrainItemPtr& item);

  /// The next to be delivered; null: none is ready. It stays where it is.
  [[nodiscard]] DrainItemPtr head();
  /// Takes it out; its group, if it is ordered, waits for free() or put_back(). Precondition: head() is not null.
  DrainItemPtr take_head();
  /// The next of its group may go.
  void free(DrainItem& item);
  /// To be delivered before the others of its group.
  void put_back(const DrainItemPtr& item);
  /// Forgets it.
  void release(DrainItem& item);

  /// Those that wait for nothing but their tickets and tokens.
  [[nodiscard]] std::size_t staged() const { return staged_; }
  [[nodiscard]] std::uint64_t staged_cost() const { return staged_cost_; }
  [[nodiscard]] bool is_empty() const { return items_ == 0; }
  [[nodiscard]] std::size_t groups() const { return groups_.size(); }

 private:
  static bool can_go(const DrainGroup& group) {
    return !group.is_busy && !group.ready.empty() && group.ready.front()->is_claimed;
  }
  static bool wants_stage(const DrainGroup& group);
  void list_waiting(DrainGroup& group);
  void list_ready(DrainGroup& group);
  void set_busy(DrainGroup& group, bool busy);
  void count_staged(DrainGroup& group, const DrainItem& item, bool in);
  void drop_if_empty(DrainGroup& group);

  std::map<std::string, DrainGroup, std::less<>> groups_;
  std::deque<DrainGroup*> waiting_turns_;
  std::deque<DrainGroup*> ready_turns_;  ///< some may have nothing that can go any more
  std::size_t items_ = 0;
  std::size_t staged_ = 0;
  std::uint64_t staged_cost_ = 0;
};

}  // namespace sluice::queue
