// What a span tells, for tests of fronts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "tracing/span.h"

namespace sluice::front {

inline const std::string kSampledParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// An attribute, numbers as text; "-": it has none of that name.
inline std::string text_of(const tracing::Span& span, std::string_view attribute) {
  for (const auto& [name, value] : span.attributes) {
    if (name != attribute) continue;
    if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
    return *std::get_if<std::string>(&value);
  }
  return "-";
}

}  // namespace sluice::front
