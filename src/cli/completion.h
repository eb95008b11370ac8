// Shell completion: what a shell is told of the commands and their options.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

struct CompletedOption {
  std::string name;   ///< with its dashes
  std::string value;  ///< kind of its value as in the help, such as FILE; empty: a flag, without a value
  std::string help;   ///< one line
};

struct CompletedCommand {
  std::string name;
  std::string help;                ///< one line
  std::vector<std::string> words;  ///< what its arguments may be, such as "inspect"
  bool takes_files = false;        ///< its arguments are files
  std::vector<CompletedOption> options;
};

/// The completion script for bash, zsh or fish; nothing for another shell. Pure.
[[nodiscard]] std::optional<std::string> completion_script(std::string_view shell,
                                                           const std::vector<CompletedCommand>& commands);

}  // namespace sluice::cli
