#include "cli/lint.h"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <string_view>

#include "policy/policy.h"

namespace sluice::cli {
namespace {

std::string counted(std::size_t count, std::string_view thing) {
  return std::to_string(count) + " " + std::string(thing) + (count == 1 ? "" : "s");
}

}  // namespace

int lint(const LintOptions& options, std::ostream& out) {
  const std::vector<std::filesystem::path> paths(options.paths.begin(), options.paths.end());
  const policy::Loaded loaded = policy::load(paths);
  for (const policy::Finding& finding : loaded.findings) out << finding.to_string() << '\n';
  const auto errors = static_cast<std::size_t>(
      std::ranges::count(loaded.findings, policy::Finding::Severity::error, &policy::Finding::severity));
  const std::size_t warnings = loaded.findings.size() - errors;
  out << counted(loaded.files, "file") << ", ";
  if (loaded.policy != nullptr) out << counted(loaded.policy->rules().size(), "limit") << ", ";
  if (loaded.findings.empty()) {
    out << "no problems\n";
  } else {
    out << counted(errors, "error") << ", " << counted(warnings, "warning") << '\n';
  }
  return errors > 0 || (options.strict && warnings > 0) ? 1 : 0;
}

}  // namespace sluice::cli
