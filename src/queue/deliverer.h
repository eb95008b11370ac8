// Where a drained request goes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "queue/message.h"

namespace sluice::queue {

/// How a delivery ended.
struct Outcome {
  enum class Kind : std::uint8_t {
    delivered,
    retry,     ///< not now: it is tried again after a pause
    refused,   ///< never: it becomes a dead letter
    hindered,  ///< nothing can be delivered now, whatever the request: all wait, and the try does not count
    broken     ///< nothing can be delivered any more: the drainer stops, and the try does not count
  };
  Kind kind = Kind::delivered;
  int status = 0;                          ///< of the answer; 0: none, so nobody has begun to work on it
  std::string reason;                      ///< of what was not delivered
  std::chrono::nanoseconds retry_after{};  ///< retry: the receiver wants no other try before; 0: it does not say
};

/// One attempt to deliver. `message` lives until its end is told.
struct Attempt {
  const Message* message = nullptr;
  unsigned number = 1;            ///< from 1, of this drainer
  bool may_be_duplicate = false;  ///< somebody has begun to deliver it before
};

/// Runs on the drainer's thread, which it must not block for long.
class Deliverer {
 public:
  using Done = std::function<void(Outcome outcome)>;
  virtual ~Deliverer() = default;
  /// Calls `done` once, on the drainer's thread, perhaps before it returns; within a time limit of its own.
  virtual void start(const Attempt& attempt, Done done) = 0;
  /// What was started goes now: called after some starts in a row, before the drainer does anything else.
  virtual void flush() {}
};

}  // namespace sluice::queue
