#include "store/store_health.h"

#include <string>

#include "base/log.h"

namespace sluice::store {

namespace {
// One time-out among many answers is not worth two lines a second time within this.
constexpr std::int64_t kShortestFailing = 1'000'000'000;  // ns
}  // namespace

void StoreHealth::failed(Failure failure, Time now) {
  rescued_.fetch_add(1, std::memory_order_relaxed);
  if (failing_.load(std::memory_order_relaxed)) return;
  const std::scoped_lock lock(mutex_);
  if (failing_.load(std::memory_order_relaxed)) return;
  failing_since_ = now.steady;
  failing_.store(true, std::memory_order_relaxed);
  log::warn("store: failing, limits answer by on_store_failure", {{"reason", to_text(failure)}});
}

void StoreHealth::succeeded(Time now) {
  set_answered();
  if (!failing_.load(std::memory_order_relaxed)) return;
  const std::scoped_lock lock(mutex_);
  if (!failing_.load(std::memory_order_relaxed) || now.steady - failing_since_ < kShortestFailing) return;
  failing_.store(false, std::memory_order_relaxed);
  const std::uint64_t rescued = rescued_.exchange(0, std::memory_order_relaxed);
  log::info("store: answers again", {{"answered_by_on_store_failure", std::to_string(rescued)}});
}

}  // namespace sluice::store
