#include "compat/envoy_policy.h"

#include <utility>

namespace sluice::compat {

policy::EnvoyRules envoy_rules(const config::EnvoyOptions& options) {
  return {.merge_domains = options.merges_domains,
          .stops_when_over = options.stops_when_over,
          .quota_mode = options.quota_mode,
          .shadow_mode = options.shadow_mode,
          .dynamic_metadata = options.dynamic_metadata};
}

policy::RuntimeFiles runtime_files(const config::EnvoyOptions& options) {
  return {.root = options.runtime_root,
          .subdirectory = options.runtime_subdirectory,
          .app_directory = options.runtime_app_directory,
          .with_dot_files = !options.ignores_dot_files,
          .watches_root = options.watches_root};
}

std::function<policy::SourceFiles()> runtime_reader(policy::RuntimeFiles files) {
  return [files = std::move(files), had_any = false]() mutable {
    policy::SourceFiles found = policy::read_runtime_files(files);
    had_any = had_any || !found.texts.empty();
    if (found.texts.empty() && had_any) {
      found.findings.push_back({policy::Finding::Severity::error, files.folder().string(), 0, 0,
                                "there is no policy file any more; without one nothing would be limited"});
    }
    return found;
  };
}

}  // namespace sluice::compat
