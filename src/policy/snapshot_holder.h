// Where the policy in force is kept, and how an io thread reads it without contention.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "policy/policy.h"

namespace sluice::policy {

/// Holds the newest snapshot. Thread-safe.
class SnapshotHolder {
 public:
  /// Returns the one before, so that the caller chooses who takes it apart.
  std::shared_ptr<const Policy> set(std::shared_ptr<const Policy> policy) {
    const std::scoped_lock lock(mutex_);
    policy_.swap(policy);
    generation_.fetch_add(1, std::memory_order_release);
    return policy;
  }
  [[nodiscard]] std::shared_ptr<const Policy> get() const {
    const std::scoped_lock lock(mutex_);
    return policy_;
  }
  [[nodiscard]] std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Policy> policy_;
  std::atomic<std::uint64_t> generation_{0};
};

/// One thread's copy: a look at the generation (about 2 ns) unless the policy has changed. Not thread-safe. The
/// reference is valid until the next call. What it gives is counted apart from what other threads were given, so that
/// sharing it costs no traffic between them. (std::atomic<std::shared_ptr> costs 11–53 ns here and TSan reports a race
/// in libstdc++ 12's.)
class SnapshotReader {
 public:
  explicit SnapshotReader(const SnapshotHolder& holder) : holder_(holder) {}
  /// May point to null: no policy is loaded.
  [[nodiscard]] const std::shared_ptr<const Policy>& get() {
    if (const std::uint64_t newest = holder_.generation(); newest != generation_) {
      auto shared = holder_.get();
      const Policy* const policy = shared.get();
      policy_.reset(policy, [shared = std::move(shared)](const Policy* /*policy*/) {});
      generation_ = newest;
    }
    return policy_;
  }

 private:
  const SnapshotHolder& holder_;
  std::shared_ptr<const Policy> policy_;
  std::uint64_t generation_ = 0;
};

}  // namespace sluice::policy
