// A charge of a step that is given back.
#pragma once

#include "store/redis/redis_store.h"

namespace sluice::store::redis {

/// Gives back what a step was charged.
class RedisStore::GiveBack final : public Step {
 public:
  explicit GiveBack(RedisStore& owner) : owner_(owner) { decisions = {&decision_, 1}; }

  void set(const Charge& charge, const Verb& what) {
    charge_ = charge;
    charges = {&charge_, 1};
    verb_ = what;
    verb = &verb_;
    failure = Failure::none;
  }
  void complete() override {
    owner_.metrics_.add(failure == Failure::none ? metrics::Counter::store_give_backs : metrics::Counter::store_losses);
    owner_.free_give_backs_.push_back(this);
  }

 private:
  RedisStore& owner_;
  Charge charge_;
  Verb verb_;
  Decision decision_;
};

}  // namespace sluice::store::redis
