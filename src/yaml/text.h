// The bytes of a YAML file, checked and with plain line ends.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "yaml/tree.h"

namespace sluice::yaml {

/// Copies `text` to `out` without a byte order mark and with \n at every line end. Refuses what is not UTF-8 and
/// characters that YAML does not allow (the scanner would stop at some of them without a word).
[[nodiscard]] std::optional<Problem> normalise_text(std::string_view text, std::string& out);

}  // namespace sluice::yaml
