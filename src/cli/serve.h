// sluice serve and sluice config: settings from file, environment and flags, then the daemon.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "config/resolve.h"

namespace sluice::cli {

struct ServeOptions {
  std::string config;               ///< the server file; empty: SLUICE_CONFIG, or else none
  std::vector<config::Flag> flags;  ///< settings given on the command line
};

/// This process' environment: NAME=value lines.
[[nodiscard]] std::vector<std::string> environment();

/// The settings in force, or nothing: then what is wrong is on `err`.
[[nodiscard]] std::optional<config::Resolved> resolve_settings(const ServeOptions& options, std::ostream& err);

/// Runs the daemon until it is told to stop. Mistakes on `err`, one line each. Returns the exit code: 0 stopped, 1
/// could not start.
[[nodiscard]] int serve(const ServeOptions& options, std::ostream& err);

/// Prints every setting in force and where it came from, passwords hidden. Returns the exit code: 0, or 1 on any
/// mistake.
[[nodiscard]] int show_settings(const ServeOptions& options, std::ostream& out, std::ostream& err);

}  // namespace sluice::cli
