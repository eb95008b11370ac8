// What came of the last attempt to read the policy, for those who ask.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <utility>

namespace sluice::policy {

/// Thread-safe.
class ReloadState {
 public:
  using TimePoint = std::chrono::system_clock::time_point;

  void loaded(TimePoint when) {
    const std::scoped_lock lock(mutex_);
    refusal_.clear();
    loaded_at_ = when;
  }
  /// `reason`: one line, not empty.
  void refused(std::string reason) {
    const std::scoped_lock lock(mutex_);
    refusal_ = std::move(reason);
  }
  /// Why the files, as they are, are not in force; empty: they are.
  [[nodiscard]] std::string refusal() const {
    const std::scoped_lock lock(mutex_);
    return refusal_;
  }
  /// When the policy in force was loaded.
  [[nodiscard]] TimePoint loaded_at() const {
    const std::scoped_lock lock(mutex_);
    return loaded_at_;
  }

 private:
  mutable std::mutex mutex_;
  std::string refusal_;
  TimePoint loaded_at_;
};

}  // namespace sluice::policy
