// Reads the values of a map by name and type, and complains about those of the wrong type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/findings.h"
#include "yaml/tree.h"

namespace sluice::policy {

/// One key of a map with its value.
struct Field {
  std::string_view name;
  const yaml::Node* key = nullptr;
  const yaml::Node* value = nullptr;
};

/// The fields of one map, the last of equal names. Views into the tree.
class FieldReader {
 public:
  /// `map` must be one. Keys that are no text, and names given twice, become findings.
  FieldReader(const yaml::Node& map, Findings& findings);

  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }
  /// The field, or null when it is absent or null: both mean the default.
  [[nodiscard]] const Field* find(std::string_view name) const;

  // Each gives nothing when the field is absent, or when it has the wrong type (which is a finding).
  /// Text as written, also of numbers and booleans without quotes.
  [[nodiscard]] std::optional<std::string_view> text(std::string_view name) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view name) const;
  /// A whole number in [least, most].
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view name, std::uint64_t least,
                                                    std::uint64_t most) const;
  /// The items of a list, each of which is a map.
  [[nodiscard]] std::vector<const yaml::Node*> maps(std::string_view name) const;

 private:
  std::vector<Field> fields_;
  Findings& findings_;
};

}  // namespace sluice::policy
