// What a node of a cluster says when a call is not for it, or not now.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "store/redis/url.h"

namespace sluice::store::redis {

/// None of these calls was executed. A value.
struct Redirect {
  enum class Kind : std::uint8_t {
    moved,     ///< the slot is at another node
    ask,       ///< the slot is on its way there; this one call goes to the other node
    try_again  ///< TRYAGAIN: some of the keys are here and some there; CLUSTERDOWN: nobody serves the slot now
  };
  Kind kind = Kind::try_again;
  std::uint16_t slot = 0;  ///< moved and ask
  Address to{};            ///< moved and ask; without a host: the node that was asked, at this port
  bool is_down = false;    ///< CLUSTERDOWN
};

/// Nothing: it is another error, or not of the agreed shape.
[[nodiscard]] std::optional<Redirect> parse_redirect(std::string_view error);

}  // namespace sluice::store::redis
