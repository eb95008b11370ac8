// The checks by which a decorator of a store asks its primary.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "store/store.h"

namespace sluice::store {

/// Relays, each of which stands for one caller's check at the primary; used again and again, so nothing is allocated
/// after warm-up. A Relay is a Check that is made of the decorator and has a `Check* outer`: the caller's. Not
/// thread-safe.
template <typename Relay>
class RelayPool {
 public:
  /// One that asks what `check` asks. Cost: O(1).
  template <typename Owner>
  [[nodiscard]] Relay& take(Owner& owner, Check& check) {
    if (free_.empty()) {
      relays_.push_back(std::make_unique<Relay>(owner));
      free_.push_back(relays_.back().get());
    }
    Relay& relay = *free_.back();
    free_.pop_back();
    relay.charges = check.charges;
    relay.decisions = check.decisions;
    relay.leases = check.leases;
    relay.verb = nullptr;
    relay.failure = Failure::none;
    relay.outer = &check;
    return relay;
  }

  void release(Relay& relay) {
    relay.outer = nullptr;
    free_.push_back(&relay);
  }

  /// Withdraws the relay of a check, or else the check itself: some go to the primary as they are. Cost: proportional
  /// to the checks pending.
  void cancel(Store& primary, Check& check) {
    const auto found = std::ranges::find_if(relays_, [&](const auto& relay) { return relay->outer == &check; });
    if (found == relays_.end()) {
      primary.cancel(check);
      return;
    }
    primary.cancel(**found);
    release(**found);
  }

 private:
  std::vector<std::unique_ptr<Relay>> relays_;
  std::vector<Relay*> free_;
};

}  // namespace sluice::store
