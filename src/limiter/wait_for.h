// Waiting on the caller's thread for an answer that comes on another.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace sluice::limiter {

/// Calls start(done), which must call `done` once, with an Answer that may be moved from, and return what can be
/// cancelled. Returns that answer; nothing when `patience` is over before it: then it was cancelled.
template <typename Answer, typename Start>
std::optional<Answer> wait_for(std::optional<std::chrono::nanoseconds> patience, Start start) {
  // Shared with the answer, which may come after the patience is over.
  struct Waiting {
    std::mutex mutex;
    std::condition_variable condition;
    std::optional<Answer> answer;
  };
  const auto waiting = std::make_shared<Waiting>();
  const auto pending = start([waiting](auto&& answer) {
    const std::scoped_lock lock(waiting->mutex);
    // NOLINTNEXTLINE(bugprone-move-forwarding-reference): one that is given by its address may be moved from, too
    waiting->answer.emplace(std::move(answer));
    waiting->condition.notify_one();
  });
  std::unique_lock lock(waiting->mutex);
  const auto is_answered = [&] { return waiting->answer.has_value(); };
  if (!patience) {
    waiting->condition.wait(lock, is_answered);
  } else if (!waiting->condition.wait_for(lock, *patience, is_answered)) {
    lock.unlock();
    pending.cancel();
    return std::nullopt;
  }
  return std::move(waiting->answer);
}

}  // namespace sluice::limiter
