// A server in a folder of its own, for tests: started, killed, paused, and gone with the object.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace sluice::testing {

/// A port that nobody uses and that no other caller, in whichever process, is given while this process runs: so a
/// server may be killed and started again on it. Throws std::runtime_error when there is none.
[[nodiscard]] std::uint16_t free_tcp_port();
[[nodiscard]] bool answers_tcp(std::uint16_t port);

/// One process with its children, in a process group of their own.
class ServerProcess {
 public:
  ServerProcess() = default;
  ~ServerProcess() { kill(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// `environment`: NAME=value, beside what this process has. Output goes to `log`.
  void start(const std::vector<std::string>& command, const std::vector<std::string>& environment,
             const std::filesystem::path& log);
  [[nodiscard]] bool has_ended();
  void signal(int number) const;
  /// Stops it until SIGCONT; does nothing more when this returns.
  void pause() const;
  void kill();

 private:
  pid_t id_ = 0;
};

/// A folder below the system's for temporary files; removed with the object.
class ServerFolder {
 public:
  explicit ServerFolder(const std::string& name);
  ~ServerFolder();
  ServerFolder(const ServerFolder&) = delete;
  ServerFolder& operator=(const ServerFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

/// Waits, some minutes at most, until `ready`. Throws std::runtime_error with the end of the log when the process ends
/// before, or the time does.
void wait_until_ready(ServerProcess& process, const std::string& name, const std::filesystem::path& log,
                      const std::function<bool()>& ready);

}  // namespace sluice::testing
