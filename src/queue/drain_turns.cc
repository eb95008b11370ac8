#include "queue/drain_turns.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace sluice::queue {
namespace {

constexpr std::size_t kStagedWhileBusy = 2;

}  // namespace

void DrainTurns::put(const DrainItemPtr& item, const std::string& group, bool is_ordered) {
  const auto [found, is_new] = groups_.try_emplace(group);
  DrainGroup& in = found->second;
  if (is_new) {
    in.name = group;
    in.is_ordered = is_ordered;
  }
  item->group = &in;
  ++in.items;
  ++items_;
  in.waiting.push_back(item);
  list_waiting(in);
}

DrainItemPtr DrainTurns::stage_next() {
  while (!waiting_turns_.empty() && !wants_stage(*waiting_turns_.front())) {
    DrainGroup& group = *waiting_turns_.front();
    waiting_turns_.pop_front();
    group.waits_listed = false;
  }
  if (waiting_turns_.empty()) return nullptr;
  DrainGroup& group = *waiting_turns_.front();
  waiting_turns_.pop_front();
  group.waits_listed = false;
  DrainItemPtr item = std::move(group.waiting.front());
  group.waiting.pop_front();
  group.ready.push_back(item);
  count_staged(group, *item, true);
  list_waiting(group);
  return item;
}

void DrainTurns::claimed(const DrainItemPtr& item) {
  item->is_claimed = true;
  list_ready(*item->group);
}

bool DrainTurns::withdraw(const DrainItemPtr& item) {
  DrainGroup& group = *item->group;
  const auto found = std::ranges::find(group.ready, item);
  if (found == group.ready.end()) return false;
  group.ready.erase(found);
  count_staged(group, *item, false);
  list_ready(group);
  return true;
}

DrainItemPtr DrainTurns::head() {
  while (!ready_turns_.empty()) {
    DrainGroup& group = *ready_turns_.front();
    if (can_go(group)) return group.ready.front();
    ready_turns_.pop_front();
    group.ready_listed = false;
    drop_if_empty(group);
  }
  return nullptr;
}

DrainItemPtr DrainTurns::take_head() {
  DrainGroup& group = *ready_turns_.front();
  assert(can_go(group));
  ready_turns_.pop_front();
  group.ready_listed = false;
  DrainItemPtr item = std::move(group.ready.front());
  group.ready.pop_front();
  count_staged(group, *item, false);
  item->holds_group = group.is_ordered;
  set_busy(group, group.is_ordered);
  return item;
}

void DrainTurns::free(DrainItem& item) {
  if (!std::exchange(item.holds_group, false)) return;
  set_busy(*item.group, false);
}

void DrainTurns::put_back(const DrainItemPtr& item) {
  item->group->ready.push_front(item);
  count_staged(*item->group, *item, true);
  free(*item);
  list_ready(*item->group);
}

void DrainTurns::release(DrainItem& item) {
  free(item);
  --items_;
  --item.group->items;
  drop_if_empty(*item.group);
  item.group = nullptr;
}

/// What is staged of a busy group is enough for its next turns.
bool DrainTurns::wants_stage(const DrainGroup& group) {
  return !group.waiting.empty() && (!group.is_busy || group.ready.size() < kStagedWhileBusy);
}

void DrainTurns::list_waiting(DrainGroup& group) {
  if (!wants_stage(group) || std::exchange(group.waits_listed, true)) return;
  waiting_turns_.push_back(&group);
}

void DrainTurns::list_ready(DrainGroup& group) {
  if (!can_go(group) || std::exchange(group.ready_listed, true)) return;
  ready_turns_.push_back(&group);
}

void DrainTurns::set_busy(DrainGroup& group, bool busy) {
  if (group.is_busy != busy) {
    group.is_busy = busy;
    staged_ += busy ? 0 - group.ready.size() : group.ready.size();
    staged_cost_ += busy ? 0 - group.ready_cost : group.ready_cost;
  }
  list_waiting(group);
  list_ready(group);
}

/// Counts what has come into `ready`, or has gone from it.
void DrainTurns::count_staged(DrainGroup& group, const DrainItem& item, bool in) {
  group.ready_cost += in ? item.cost : 0 - item.cost;
  if (group.is_busy) return;
  staged_ += in ? 1 : static_cast<std::size_t>(-1);
  staged_cost_ += in ? item.cost : 0 - item.cost;
}

void DrainTurns::drop_if_empty(DrainGroup& group) {
  if (group.items > 0 || group.waits_listed || group.ready_listed) return;
  groups_.erase(groups_.find(group.name));
}

}  // namespace sluice::queue
