// Circuit breaker: stops asking a server that keeps failing.
#pragma once

#include <cstdint>

namespace sluice::store::redis {

/// Opens after `failures` failures in a row; one success closes it. Knows no time: when to probe is its owner's matter.
/// Not thread-safe.
class Breaker {
 public:
  /// `failures` from 1.
  explicit Breaker(unsigned failures) : most_(failures) {}
  [[nodiscard]] bool is_open() const { return open_; }
  /// True when this one opens it.
  bool failed() {
    if (open_ || ++in_a_row_ < most_) return false;
    open_ = true;
    return true;
  }
  /// True when this one closes it.
  bool succeeded() {
    in_a_row_ = 0;
    const bool was_open = open_;
    open_ = false;
    return was_open;
  }

 private:
  unsigned most_;
  unsigned in_a_row_ = 0;
  bool open_ = false;
};

}  // namespace sluice::store::redis
