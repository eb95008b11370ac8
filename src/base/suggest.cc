#include "base/suggest.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace sluice {
namespace {

constexpr std::size_t kLongest = 64;
constexpr std::size_t kMostEdits = 2;

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  if (a.size() > kLongest || b.size() > kLongest) return std::numeric_limits<std::size_t>::max();
  using Row = std::array<std::size_t, kLongest + 1>;
  Row before_last{};
  Row last{};
  Row row{};
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t least = kMostEdits + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < least && distance * 2 < name.size()) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace sluice
