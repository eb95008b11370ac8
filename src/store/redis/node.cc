#include "store/redis/node.h"

#include <utility>

namespace sluice::store::redis {

Node::Node(const Options& options, Tell tell)
    : failures_(options.failures),
      probe_interval_(options.probe_interval.count()),
      tell_(std::move(tell)),
      jitter_(options.seed) {}

void Node::failed(Failure reason, std::string_view detail, std::int64_t now) {
  if (is_open() || in_a_row_.fetch_add(1, std::memory_order_relaxed) + 1 < failures_) return;
  const std::scoped_lock lock(mutex_);
  if (is_open()) return;
  probe_at_.store(now + jitter_.spread(probe_interval_), std::memory_order_release);
  open_.store(true, std::memory_order_release);
  tell_state(reason, detail);
  notify();
}

void Node::mend() {
  in_a_row_.store(0, std::memory_order_relaxed);
  if (!is_open()) return;
  const std::scoped_lock lock(mutex_);
  if (!is_open()) return;
  in_a_row_.store(0, std::memory_order_relaxed);
  open_.store(false, std::memory_order_release);
  tell_state(Failure::none, {});
  notify();
}

bool Node::take_probe(std::int64_t now) {
  const std::scoped_lock lock(mutex_);
  if (!is_open() || now < probe_at()) return false;
  probe_at_.store(now + jitter_.spread(probe_interval_), std::memory_order_release);
  return true;
}

void Node::probe_soon() {
  const std::scoped_lock lock(mutex_);
  probe_at_.store(0, std::memory_order_release);
}

void Node::link_up() {
  const std::scoped_lock lock(mutex_);
  ++links_;
  tell_state(Failure::none, {});
}

void Node::link_down(Failure reason, std::string_view detail) {
  const std::scoped_lock lock(mutex_);
  --links_;
  tell_state(reason, detail);
}

void Node::link_gone() {
  const std::scoped_lock lock(mutex_);
  --links_;
}

void Node::link_failed(Failure reason, std::string_view detail) {
  const std::scoped_lock lock(mutex_);
  tell_state(reason, detail);
}

bool Node::take_watch(const Client& who) {
  const std::scoped_lock lock(mutex_);
  if (watcher_ == nullptr) watcher_ = &who;
  return watcher_ == &who;
}

void Node::leave_watch(const Client& who) {
  const std::scoped_lock lock(mutex_);
  if (watcher_ == &who) watcher_ = nullptr;
}

void Node::listen(Listener& listener) {
  const std::scoped_lock lock(mutex_);
  listeners_.push_back(&listener);
}

void Node::forget(const Listener& listener) {
  const std::scoped_lock lock(mutex_);
  std::erase(listeners_, &listener);
}

void Node::tell_state(Failure reason, std::string_view detail) {
  const bool up = !is_open() && links_ > 0;
  if (told_ == up) return;
  told_ = up;
  tell_(up, reason, detail);
}

void Node::notify() const {
  for (Listener* listener : listeners_) listener->node_changed();
}

}  // namespace sluice::store::redis
