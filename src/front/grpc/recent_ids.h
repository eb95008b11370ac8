// The newest few stream ids of a kind.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::front::grpc {

/// Remembers the last `capacity` ids added. Takes no memory before the first. Looking one up is a scan.
class RecentIds {
 public:
  explicit RecentIds(std::size_t capacity) : capacity_(capacity) {}

  void add(std::int32_t id) {
    if (ids_.empty()) ids_.resize(capacity_);
    ids_[next_] = id;
    next_ = next_ + 1 == capacity_ ? 0 : next_ + 1;
  }
  /// Precondition: id > 0.
  [[nodiscard]] bool contains(std::int32_t id) const { return std::find(ids_.begin(), ids_.end(), id) != ids_.end(); }

 private:
  std::size_t capacity_;
  std::size_t next_ = 0;
  std::vector<std::int32_t> ids_;
};

}  // namespace sluice::front::grpc
