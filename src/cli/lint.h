// sluice lint: reads policy files and tells what is wrong with them.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace sluice::cli {

struct LintOptions {
  std::vector<std::string> paths;  ///< files and directories, at least one
  bool strict = false;             ///< warnings count as errors
};

/// One finding a line on `out`: file:line:column: error|warning: what. Returns the exit code: 0 clean, 1 any error.
[[nodiscard]] int lint(const LintOptions& options, std::ostream& out);

}  // namespace sluice::cli
