// What the name of a key in Redis says.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/redis/key.h"

namespace sluice::cli {

/// The parts of a counter's name, as store::redis::append_redis_key puts them together.
struct KeyName {
  std::string identity;  ///< of the limit
  std::string key;       ///< the values: first|rest

  /// Nothing: it is not a counter of Sluice's with this prefix and so many groups.
  [[nodiscard]] static std::optional<KeyName> parse(std::string_view name, const store::redis::KeyNaming& naming);
};

}  // namespace sluice::cli
