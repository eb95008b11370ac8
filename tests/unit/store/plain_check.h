// A check with its own charges, as a caller of a store has.
#pragma once

#include <utility>
#include <vector>

#include "store/store.h"

namespace sluice::store {

class PlainCheck final : public Check {
 public:
  explicit PlainCheck(std::vector<Charge> some) : held_charges_(std::move(some)) {
    held_decisions_.resize(held_charges_.size());
    charges = held_charges_;
    decisions = held_decisions_;
  }
  void complete() override { ++completed; }
  int completed = 0;

 private:
  std::vector<Charge> held_charges_;
  std::vector<Decision> held_decisions_;
};

}  // namespace sluice::store
