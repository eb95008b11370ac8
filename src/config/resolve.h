// Defaults, file, environment and flags → the settings in force.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.h"

namespace sluice::config {

/// The server file, already read. `name` as given; relative paths in it count from its folder.
struct File {
  std::string name;
  std::string text;
};

/// A setting given on the command line. `name` without the dashes.
struct Flag {
  std::string name;
  std::vector<std::string> values;
};

/// A value in force and who said so: "default", "file:line:column", the variable's or the flag's name.
struct Source {
  std::vector<std::string> values;
  std::string origin;
};

struct Resolved {
  Settings settings;
  std::vector<Source> sources;  ///< one a row of all_settings()
  /// In the place of envoyproxy/ratelimit: what of its environment no setting shows, by variable.
  std::vector<std::pair<std::string, Source>> variables;
  std::vector<std::string>
      errors;  ///< each one line, naming the place; the settings are not to be used when there is any
  std::vector<std::string> warnings;  ///< environment variables that look misspelt
};

/// Flags win over the environment over the file over the defaults. `environment` holds NAME=value lines; other names
/// than SLUICE_… are skipped, but for those of read_ratelimit_environment(), which count where nothing else says where
/// Redis is. Never throws. Pure: the same input gives the same answer.
[[nodiscard]] Resolved resolve(const std::optional<File>& file, std::span<const std::string> environment,
                               std::span<const Flag> flags);

}  // namespace sluice::config
