// Does a caller want problem documents?
#pragma once

#include <optional>
#include <string_view>

namespace sluice::http {

/// What the Accept fields of one request say about application/problem+json against application/json.
class AcceptPreference {
 public:
  /// Takes in one field value (several fields count as one list).
  void add(std::string_view value);
  /// application/problem+json is named and wanted at least as much as application/json; named both alike: the one that
  /// comes first.
  [[nodiscard]] bool wants_problem() const;

 private:
  std::optional<int> problem_;  ///< quality in thousandths
  std::optional<int> json_;
  std::optional<int> wildcard_;
  bool json_first_ = false;
};

}  // namespace sluice::http
