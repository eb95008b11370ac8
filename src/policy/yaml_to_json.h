// A YAML value as JSON text.
#pragma once

#include <string>

#include "policy/yaml_tree.h"

namespace sluice::policy {

/// Appends `node` as JSON, keys in the order of the file. Numbers that JSON cannot hold become strings.
void append_json(const YamlNode& node, std::string& out);

}  // namespace sluice::policy
