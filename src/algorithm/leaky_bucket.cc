#include "algorithm/leaky_bucket.h"

namespace sluice::algorithm {

void LeakyBucket::convert(State& state, const LeakyBucket& old, std::int64_t now) const noexcept {
  if (state.last == kNeverSeen || *this == old) return;
  now = TokenBucket::clamp(state, now);
  const auto backlog = static_cast<std::uint64_t>(old.slots_.view(state, now).reset_after);
  TokenBucket::store(state, now, Uint128{backlog} * slots_.c_);
}

}  // namespace sluice::algorithm
