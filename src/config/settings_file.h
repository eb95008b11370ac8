// The server file: YAML → rows of the table with their places.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace sluice::config {

struct FileValue {
  std::size_t row = 0;  ///< in all_settings()
  std::vector<std::string> values;
  std::string place;  ///< "file:line:column"
};

struct FileContents {
  std::vector<FileValue> values;
  std::vector<QueueSettings> queues;
  std::vector<std::string> errors;  ///< each one line, beginning with its place
};

/// Reads the whole file, so that all mistakes are told at once. `name` is for messages. Never throws.
[[nodiscard]] FileContents read_settings_file(const std::string& name, const std::string& text);

/// The row of `name` in all_settings().
[[nodiscard]] std::optional<std::size_t> row_of_name(std::string_view name);

}  // namespace sluice::config
