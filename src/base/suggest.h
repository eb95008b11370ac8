// Near misses: what somebody probably meant.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace sluice {

/// Least number of insertions, deletions, substitutions and swaps of neighbours between two names. Names longer than 64
/// bytes are as far away as can be. Cost: |a| × |b| steps, no allocation.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `name`, or empty when none is near: at most 2 edits, and less than half of the name. Ties:
/// the first.
[[nodiscard]] std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace sluice
