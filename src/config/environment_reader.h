// Variables as Go's programs read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::config {

/// Reads variables one by one and gathers what is wrong with them. An empty one is as one that is not set. Not
/// thread-safe.
class EnvironmentReader {
 public:
  /// `environment` holds NAME=value lines.
  explicit EnvironmentReader(std::span<const std::string> environment);

  [[nodiscard]] std::string text(std::string_view name, const std::string& fallback = {}) const;
  [[nodiscard]] bool has(std::string_view name) const { return !text(name).empty(); }
  /// 1, t, true or 0, f, false.
  [[nodiscard]] bool truth(std::string_view name, bool fallback = false);
  [[nodiscard]] std::uint64_t number(std::string_view name, std::uint64_t fallback, std::uint64_t most);
  /// As Go reads one; what is not within 0 … 1 counts as the nearest number that is, as 1 when it is none.
  [[nodiscard]] float ratio(std::string_view name, float fallback);
  /// Also when it is empty.
  [[nodiscard]] bool is_there(std::string_view name) const { return variables_.contains(name); }
  /// Not negative: "1h30m", "10s".
  [[nodiscard]] std::chrono::nanoseconds duration(std::string_view name, std::chrono::nanoseconds fallback);
  /// name:value,name:value…
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> pairs(std::string_view name);
  /// a,b,…
  [[nodiscard]] std::vector<std::string> list(std::string_view name) const;

  void fail(std::string_view name, const std::string& expected);
  [[nodiscard]] std::vector<std::string> take_errors() { return std::move(errors_); }
  /// That a value counts as another: a line.
  void warn(std::string_view name, const std::string& as);
  [[nodiscard]] std::vector<std::string> take_warnings() { return std::move(warnings_); }

 private:
  std::map<std::string, std::string, std::less<>> variables_;
  std::vector<std::string> errors_;
  std::vector<std::string> warnings_;
};

}  // namespace sluice::config
