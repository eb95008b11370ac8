// Delivers to a function of the program's.
#pragma once

#include <functional>
#include <utility>

#include "queue/deliverer.h"

namespace sluice::queue {

/// The function is called on the drainer's thread and must not block; it calls `done`, on that thread, when it will.
class CallbackDeliverer final : public Deliverer {
 public:
  using Deliver = std::function<void(const Attempt& attempt, Done done)>;
  explicit CallbackDeliverer(Deliver deliver) : deliver_(std::move(deliver)) {}
  void start(const Attempt& attempt, Done done) override { deliver_(attempt, std::move(done)); }

 private:
  const Deliver deliver_;
};

}  // namespace sluice::queue
