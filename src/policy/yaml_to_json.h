// A YAML value as JSON text.
#pragma once

#include <string>

#include "yaml/tree.h"

namespace sluice::policy {

/// Appends `node` as JSON, keys in the order of the file. Numbers that JSON cannot hold become strings.
void append_json(const yaml::Node& node, std::string& out);

}  // namespace sluice::policy
