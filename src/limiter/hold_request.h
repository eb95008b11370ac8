// A hold that comes back: as a request with the verb that gives back or settles what was taken.
#pragma once

#include <cstdint>
#include <vector>

#include "limiter/counter_verb.h"
#include "limiter/hold.h"
#include "policy/request.h"

namespace sluice::limiter {

/// Owns all that its request and verb point to. Not to be moved while they are in use.
class HoldRequest {
 public:
  explicit HoldRequest(Hold hold);
  HoldRequest(const HoldRequest&) = delete;
  HoldRequest& operator=(const HoldRequest&) = delete;

  [[nodiscard]] const Request& request() const { return request_; }
  /// Of leases: frees them.
  [[nodiscard]] CounterVerb release() const;
  /// Of a reservation: charges the difference to what it cost in the end, or gives it back; 0: all of it.
  [[nodiscard]] CounterVerb commit(std::uint64_t actual) const;

 private:
  Hold hold_;
  std::vector<std::vector<Entry>> entries_;
  std::vector<Descriptor> descriptors_;
  std::vector<std::uint64_t> leases_;
  std::vector<std::uint32_t> marks_;
  Request request_;
};

}  // namespace sluice::limiter
