// Collects what is wrong with one file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"
#include "yaml/tree.h"

namespace sluice::policy {

/// The findings of one file. After kMost of them only their number is kept, so that a hostile file cannot fill the
/// memory with complaints.
class Findings {
 public:
  static constexpr std::size_t kMost = 1000;

  explicit Findings(std::string file) : file_(std::move(file)) {}
  void error(yaml::Position position, std::string message) {
    add(Finding::Severity::error, position, std::move(message));
  }
  void warning(yaml::Position position, std::string message) {
    add(Finding::Severity::warning, position, std::move(message));
  }
  [[nodiscard]] const std::string& file() const { return file_; }
  /// How many errors so far.
  [[nodiscard]] std::size_t errors() const { return errors_; }
  /// Moves all to `out`, by line.
  void drain_to(std::vector<Finding>& out);

 private:
  void add(Finding::Severity severity, yaml::Position position, std::string message);

  std::string file_;
  std::vector<Finding> findings_;
  std::size_t errors_ = 0;
  std::size_t left_out_ = 0;
};

/// `text` in double quotes as it can be shown to a person: control characters escaped, cut when long.
[[nodiscard]] std::string quote(std::string_view text);

/// What a node is, for "found …": a quoted text, a number, a list …
[[nodiscard]] std::string described(const yaml::Node& node);

}  // namespace sluice::policy
