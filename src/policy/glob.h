// Patterns with `*`, matched in linear time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::policy {

/// A pattern in which each `*` stands for zero or more bytes and all else for itself. Immutable and thread-safe.
/// Matching allocates nothing and takes time linear in the text for each piece between stars: there is no backtracking.
class Glob {
 public:
  explicit Glob(std::string_view pattern);
  [[nodiscard]] bool matches(std::string_view text) const;
  [[nodiscard]] static bool is_pattern(std::string_view text) { return text.find('*') != std::string_view::npos; }

 private:
  std::string first_;                ///< before the first star
  std::vector<std::string> middle_;  ///< between stars, none empty
  std::string last_;                 ///< after the last star
  bool has_star_ = false;
};

}  // namespace sluice::policy
