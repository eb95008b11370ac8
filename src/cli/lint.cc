#include "cli/lint.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include "compat/envoy_policy.h"
#include "config/redis_options.h"
#include "config/resolve.h"
#include "policy/policy.h"
#include "store/redis/redis_store.h"

namespace sluice::cli {
namespace {

std::string counted(std::size_t count, std::string_view thing) {
  return std::to_string(count) + " " + std::string(thing) + (count == 1 ? "" : "s");
}

/// What `serve --compat envoyproxy` would read of one directory, or of where the environment says.
policy::SourceFiles read_runtime(const policy::RuntimeFiles& where) {
  policy::SourceFiles files = policy::read_runtime_files(where);
  if (files.texts.empty() && std::ranges::none_of(files.findings, &policy::Finding::is_error)) {
    files.findings.push_back({policy::Finding::Severity::error, where.folder().string(), 0, 0,
                              "there is no policy file here, and nothing would be limited"});
  }
  return files;
}

policy::SourceFiles read_as_envoyproxy(const std::vector<std::filesystem::path>& paths,
                                       const config::EnvoyOptions& options) {
  policy::RuntimeFiles where = compat::runtime_files(options);
  if (paths.empty()) return read_runtime(where);
  policy::SourceFiles all;
  for (const std::filesystem::path& path : paths) {
    policy::SourceFiles files;
    if (std::error_code ignored; std::filesystem::is_directory(path, ignored)) {
      where = {.root = path,
               .subdirectory = {},
               .app_directory = {},
               .with_dot_files = !options.ignores_dot_files,
               .watches_root = false};
      files = read_runtime(where);
    } else {
      files = policy::read_files({&path, 1});
    }
    std::ranges::move(files.texts, std::back_inserter(all.texts));
    std::ranges::move(files.findings, std::back_inserter(all.findings));
  }
  return all;
}

/// Why `serve --compat envoyproxy` would not start by these variables.
std::vector<std::string> errors_of(const config::Resolved& resolved) {
  if (!resolved.errors.empty()) return resolved.errors;
  std::vector<std::string> errors;
  for (const config::Settings* settings : {&resolved.settings, resolved.settings.per_second.get()}) {
    if (settings == nullptr || settings->redis_url.empty()) continue;
    const auto error = store::redis::check_options(config::redis_options(*settings, settings->redis_timeout));
    if (error) errors.push_back("store.redis: " + error->message);
  }
  return errors;
}

policy::Loaded load_as_envoyproxy(const std::vector<std::filesystem::path>& paths,
                                  const std::vector<std::string>& environment) {
  const config::Flag compat{.name = "compat", .values = {"envoyproxy"}};
  const config::Resolved resolved = config::resolve(std::nullopt, environment, {&compat, 1});
  const config::EnvoyOptions& theirs = resolved.settings.envoy;
  policy::LoadOptions options;
  options.envoy = compat::envoy_rules(theirs);
  policy::Loaded loaded = policy::load(read_as_envoyproxy(paths, theirs), options);
  for (const std::string& error : errors_of(resolved)) {
    loaded.findings.push_back({policy::Finding::Severity::error, "environment", 0, 0, error});
  }
  return loaded;
}

}  // namespace

int lint(const LintOptions& options, std::ostream& out) {
  const std::vector<std::filesystem::path> paths(options.paths.begin(), options.paths.end());
  const policy::Loaded loaded =
      options.as_envoyproxy ? load_as_envoyproxy(paths, options.environment) : policy::load(paths);
  for (const policy::Finding& finding : loaded.findings) out << finding.to_string() << '\n';
  const auto errors = static_cast<std::size_t>(std::ranges::count_if(loaded.findings, &policy::Finding::is_error));
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
