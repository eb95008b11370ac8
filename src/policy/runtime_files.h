// Policy files where envoyproxy/ratelimit looks for them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace sluice::policy {

/// RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY and all that is below it, whatever the files are named.
struct RuntimeFiles {
  std::filesystem::path root;
  std::filesystem::path subdirectory;  ///< may be empty
  std::string app_directory;           ///< also the beginning of file names in the folder above: config.yaml
  bool with_dot_files = true;
  bool watches_root = true;  ///< false: the app directory alone

  /// The folder that is read.
  [[nodiscard]] std::filesystem::path folder() const;
  /// Where changes are to be looked for.
  [[nodiscard]] std::vector<std::filesystem::path> watched() const;
};

/// In the order of their names; a folder that does not exist, or is empty, holds no files. Never throws. Links to files
/// are followed, links to folders are not (so that a Kubernetes volume is read once).
[[nodiscard]] SourceFiles read_runtime_files(const RuntimeFiles& where);

}  // namespace sluice::policy
