#include "front/resp/throttle_limits.h"

#include <utility>

#include "policy/identity.h"
#include "store/limit_ids.h"

namespace sluice::resp {

ThrottleLimits::ThrottleLimits()
    : identity_(policy::make_override_identity("resp", "throttle")), id_(store::limit_id(identity_)) {}

const std::shared_ptr<const store::CountedLimit>& ThrottleLimits::of(const Bucket& bucket) {
  constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;
  std::uint64_t hash = bucket.rate * kMix;
  hash = (hash ^ bucket.burst) * kMix;
  hash = (hash ^ static_cast<std::uint64_t>(bucket.period.count())) * kMix;
  std::shared_ptr<const store::CountedLimit>& kept = kept_[(hash >> 32U) % kKept];
  if (kept == nullptr || kept->numbers.rate != bucket.rate || kept->numbers.burst != bucket.burst ||
      kept->numbers.period != bucket.period) {
    auto made = std::make_shared<store::CountedLimit>();
    made->numbers = {.rate = bucket.rate, .period = bucket.period, .burst = bucket.burst};
    made->identity = identity_;
    made->id = id_;
    kept = std::move(made);
  }
  return kept;
}

}  // namespace sluice::resp
