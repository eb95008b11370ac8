#include "store/redis/node.h"

#include <algorithm>
#include <string>
#include <utility>

namespace sluice::store::redis {

namespace {
// Reasons that are told while a server cannot be asked, each once.
constexpr std::size_t kMostReasons = 8;
}  // namespace

Node::Node(const Options& options, Tell tell, ServerHealth::Tell tell_health)
    : health_(std::move(tell_health)),
      failures_(options.failures),
      probe_interval_(options.probe_interval.count()),
      tell_(std::move(tell)),
      jitter_(options.seed) {}

Node::~Node() {
  if (has_left_.load(std::memory_order_relaxed)) health_.left();
}

void Node::failed(Failure reason, std::string_view detail, std::int64_t now) {
  if (is_open() || in_a_row_.fetch_add(1, std::memory_order_relaxed) + 1 < failures_) return;
  const std::scoped_lock lock(mutex_);
  if (is_open()) return;
  opened_for_.store(reason, std::memory_order_relaxed);
  opened_detail_ = detail;
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

void Node::check_failed(Failure reason, std::string_view words, std::int64_t now) {
  if (reason != Failure::circuit_open) {
    health_.failed(1, reason, words, now);
    return;
  }
  // What it was opened for is worth looking up once.
  std::string detail;
  if (!health_.is_failing()) {
    const std::scoped_lock lock(mutex_);
    detail = opened_detail_;
  }
  health_.failed(1, opened_for(), detail, now);
}

std::string Node::trouble() {
  if (std::string why = health_.trouble(); !why.empty()) return why;
  const std::scoped_lock lock(mutex_);
  return told_ == false ? told_last_ : std::string();
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
  if (up) {
    if (told_ == true) return;
    told_reasons_.clear();
  } else {
    if (reason == Failure::none) return;  // a connection, but the breaker is open, or the other way round
    if (told_ == false && told_reasons_.size() >= kMostReasons) return;
    std::string words = std::string(to_text(reason)).append(detail);
    if (told_ == false && std::ranges::find(told_reasons_, words) != told_reasons_.end()) return;
    told_reasons_.push_back(std::move(words));
    told_last_ = to_text(reason);
    if (!detail.empty()) told_last_.append(": ").append(detail);
  }
  told_ = up;
  tell_(up, reason, detail);
}

void Node::notify() const {
  for (Listener* listener : listeners_) listener->node_changed();
}

}  // namespace sluice::store::redis
