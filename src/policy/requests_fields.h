// What the readers of `requests` share: lists of texts, names of keys.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/field_reader.h"
#include "policy/findings.h"
#include "yaml/tree.h"

namespace sluice::policy {

/// A text with its place.
struct PlacedText {
  std::string text;
  yaml::Position position;
};

/// Complains about fields other than `known`, with what was probably meant. `place`: "in `jwt`".
void check_keys(const FieldReader& fields, std::initializer_list<std::string_view> known, std::string_view place,
                Findings& findings);

/// A list of texts, or one alone. What is none of them is a finding.
[[nodiscard]] std::vector<PlacedText> texts_of(const FieldReader& fields, std::string_view name, Findings& findings);

/// The node as a map: nothing written counts as an empty one; anything else is a finding, and then an empty map, too.
[[nodiscard]] const yaml::Node& map_of(const yaml::Node& node, std::string_view name, Findings& findings);
const yaml::Node& map_of(yaml::Node&& node, std::string_view name, Findings& findings) = delete;

/// In lower case, as names of header fields are compared.
[[nodiscard]] std::string lower_case(std::string_view text);

}  // namespace sluice::policy
