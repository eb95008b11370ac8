// How far something is that takes long, on standard error: one line that changes on a terminal, else a line each time.
#pragma once

#include <chrono>
#include <string_view>

namespace sluice::cli {

/// Not thread-safe.
class ProgressLine {
 public:
  ProgressLine();
  /// Takes the line away.
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  [[nodiscard]] bool is_terminal() const { return is_terminal_; }
  /// Is it time to show something? The first time after a second, so that nothing is said of what is quick; then every
  /// 200 ms on a terminal, else every second. Cost: a look at the clock.
  [[nodiscard]] bool is_due();
  /// `line` without a line break, of plain text.
  void show(std::string_view line);
  void clear();

 private:
  const bool is_terminal_;
  std::chrono::steady_clock::time_point next_;
  bool is_shown_ = false;
};

}  // namespace sluice::cli
