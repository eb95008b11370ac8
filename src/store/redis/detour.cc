#include "store/redis/detour.h"

#include <algorithm>

namespace sluice::store::redis {

namespace {
constexpr std::int64_t kFirstDelay = 1'000'000;  // ns, of a call to be tried again
constexpr std::int64_t kLongestDelay = 8'000'000;
}  // namespace

Failure refusal_of(const Redirect& redirect) {
  if (redirect.kind != Redirect::Kind::try_again) return Failure::slot_unserved;
  return redirect.is_down ? Failure::cluster_down : Failure::slot_moving;
}

Detour plan_detour(const Redirect& redirect, unsigned hops, const Address& asked) {
  Detour detour;
  if (hops > kMostHops) {
    detour.failure = refusal_of(redirect);
    return detour;
  }
  if (redirect.kind == Redirect::Kind::try_again) {
    detour.wants_map = redirect.is_down;
    detour.delay = std::min(kFirstDelay << (hops - 1), kLongestDelay);
    return detour;
  }
  detour.to = redirect.to;
  if (detour.to->host.empty()) detour.to->host = asked.host;
  detour.is_asking = redirect.kind == Redirect::Kind::ask;
  detour.has_moved = !detour.is_asking;
  detour.wants_map = detour.has_moved;
  return detour;
}

}  // namespace sluice::store::redis
