// Where a call goes next that a node of a cluster has sent elsewhere.
#pragma once

#include <cstdint>
#include <optional>

#include "store/failure.h"
#include "store/redis/redirect.h"

namespace sluice::store::redis {

/// What becomes of such a call. A value.
struct Detour {
  Failure failure = Failure::none;  ///< anything but none: it is given up
  std::optional<Address> to;        ///< this node, or else whoever has the slot now
  bool is_asking = false;           ///< it goes there as an exception
  bool has_moved = false;           ///< the node there has the slot from now on
  bool wants_map = false;           ///< the map is to be asked for anew
  std::int64_t delay = 0;           ///< ns, until it is sent
};

/// How often a call is sent elsewhere before it is given up; within its deadline anyway.
inline constexpr unsigned kMostHops = 16;

/// `hops`: how often it has been sent elsewhere, this time included. `asked`: the node that sent it away.
[[nodiscard]] Detour plan_detour(const Redirect& redirect, unsigned hops, const Address& asked);

/// Why a call that was answered so, and not otherwise after it, was not carried out.
[[nodiscard]] Failure refusal_of(const Redirect& redirect);

}  // namespace sluice::store::redis
