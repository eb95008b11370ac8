// What fuzzers of several parsers need.
#pragma once

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "policy/policy.h"

namespace sluice::fuzz {

/// A property that must hold, whatever the input.
inline void require(bool holds) {
  if (!holds) std::abort();
}

/// A policy that is known to be right.
inline std::shared_ptr<const policy::Policy> load(std::string_view text) {
  const std::array<policy::SourceText, 1> texts = {{{"p", std::string(text)}}};
  std::shared_ptr<const policy::Policy> policy = policy::load_texts(texts).policy;
  require(policy != nullptr);
  return policy;
}

}  // namespace sluice::fuzz
