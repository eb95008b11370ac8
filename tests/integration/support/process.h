// A child process under test: what it prints, and how it ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sluice::test {

/// How long anything may take that normally takes milliseconds. Generous: a busy machine must not fail a test.
inline constexpr std::chrono::seconds kPatience{60};

/// Runs a program from construction on; killed at destruction when it has not ended. Not thread-safe.
class Process {
 public:
  /// `before_exec` runs in the child: only what is safe between fork and exec.
  explicit Process(const std::vector<std::string>& command, const std::function<void()>& before_exec = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t id() const { return id_; }
  void signal(int number) const;
  /// Stops it until SIGCONT; does nothing more when this returns.
  void pause() const;
  /// The exit code; 128 + n when signal n ended it; nothing when it did not end in time.
  [[nodiscard]] std::optional<int> wait(std::chrono::milliseconds timeout = kPatience);
  /// All that it has printed to standard output and error so far, as it came.
  [[nodiscard]] std::string output() const;
  /// What follows `mark` on a line it prints, now or in time; nothing when it ends or time is up before.
  [[nodiscard]] std::optional<std::string> line_after(std::string_view mark,
                                                      std::chrono::milliseconds timeout = kPatience) const;
  [[nodiscard]] bool has_printed(std::string_view text, std::chrono::milliseconds timeout = kPatience) const {
    return line_after(text, timeout).has_value();
  }

 private:
  void read();

  pid_t id_ = -1;
  int pipe_ = -1;
  std::optional<int> exit_code_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::string output_;
  bool at_end_ = false;
  std::thread reader_;
};

}  // namespace sluice::test
