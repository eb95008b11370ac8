// Names of statistics → names and tags (dogstatsd).
#pragma once

#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "config/envoy_options.h"

namespace sluice::compat {

struct Tagged {
  std::string name;
  std::string tags;  ///< "tag:value,tag:value"; may be empty
};

/// The mogrifiers of a configuration. Immutable; thread-safe.
class Mogrify {
 public:
  /// Precondition: the patterns are regular expressions.
  explicit Mogrify(const std::vector<config::Mogrifier>& mogrifiers);
  /// By the first pattern that is found in the name; as it is without one.
  [[nodiscard]] Tagged operator()(const std::string& name) const;

 private:
  std::vector<std::pair<std::regex, config::Mogrifier>> mogrifiers_;
};

}  // namespace sluice::compat
