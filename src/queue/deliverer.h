// Where a drained request goes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "queue/message.h"

namespace sluice::queue {

/// How a delivery ended.
struct Outcome {
  enum class Kind : std::uint8_t {
    delivered,
    retry,   ///< not now: it is tried again after a pause
    refused  ///< never: it becomes a dead letter
  };
  Kind kind = Kind::delivered;
  int status = 0;      ///< of the answer; 0: none
  std::string reason;  ///< of what was not delivered
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
};

}  // namespace sluice::queue
