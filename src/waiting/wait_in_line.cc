// Waiting in a thread.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "sluice/internal/waits.h"

namespace sluice::internal {

namespace {

class Sleeper final : public Waiter {
 public:
  explicit Sleeper(Waits& waits) : waits_(waits) {}

  [[nodiscard]] bool lead(std::int64_t ready) noexcept override {
    const std::scoped_lock lock(mutex_);
    leads_ = true;
    ready_ = ready;
    changed_.notify_one();
    return true;
  }
  void finish(const WaitResult& result) noexcept override {
    const std::scoped_lock lock(mutex_);
    result_ = result;
    changed_.notify_one();
  }

  // Sleeps until it has left the line. The first in the line sleeps by the clock, the others until they are told.
  WaitResult sleep() {
    std::unique_lock lock(mutex_);
    while (!result_) {
      if (!leads_) {
        changed_.wait(lock);
        continue;
      }
      // What is left by the limiter's clock, which needn't be the one that the machine sleeps by.
      const std::chrono::nanoseconds left(ready_ - waits_.now());
      if (left.count() > 0) {
        changed_.wait_until(lock, std::chrono::steady_clock::now() + left);
        continue;
      }
      leads_ = false;  // grant_due tells again if it isn't time
      lock.unlock();
      waits_.grant_due();
      lock.lock();
    }
    return *result_;
  }

 private:
  Waits& waits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<WaitResult> result_;
  std::int64_t ready_ = 0;
  bool leads_ = false;
};

}  // namespace

WaitResult wait_in_line(Waits& waits, std::uint64_t cost, const Deadline& deadline, std::stop_token stop) {
  if (stop.stop_requested()) return waits.refuse(cost, WaitOutcome::stopped);
  Sleeper sleeper(waits);
  if (const auto at_once = waits.enqueue(sleeper, cost, deadline)) return *at_once;
  const std::stop_callback on_stop(std::move(stop), [&] { waits.withdraw(sleeper); });
  return sleeper.sleep();
}

}  // namespace sluice::internal
