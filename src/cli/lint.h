// sluice lint: reads policy files and tells what is wrong with them.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace sluice::cli {

struct LintOptions {
  // NOLINTNEXTLINE(readability-redundant-member-init): gcc warns of initializers that leave it out
  std::vector<std::string> paths{};  ///< files and directories; none: with `as_envoyproxy` alone, RUNTIME_ROOT's
  bool strict = false;               ///< warnings count as errors
  /// As `serve --compat envoyproxy` reads and judges them: a directory is what RUNTIME_APPDIRECTORY is there.
  bool as_envoyproxy = false;
  // NOLINTNEXTLINE(readability-redundant-member-init): gcc warns of initializers that leave it out
  std::vector<std::string> environment{};  ///< NAME=value lines, for `as_envoyproxy`
};

/// One finding a line on `out`: file:line:column: error|warning: what. Returns the exit code: 0 clean, 1 any error.
[[nodiscard]] int lint(const LintOptions& options, std::ostream& out);

}  // namespace sluice::cli
