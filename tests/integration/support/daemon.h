// The real binary, run by a test.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/integration/support/process.h"

namespace sluice::test {

/// The path of the binary under test.
[[nodiscard]] std::string sluice_binary();

/// A folder that goes with its object.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file and returns its path.
  std::string write(const std::string& name,
                    std::string_view text) const;  // NOLINT(modernize-use-nodiscard): a file may be known

 private:
  std::filesystem::path path_;
};

/// `sluice serve` with HTTP and admin on free ports and gRPC off, unless the arguments say otherwise. Ready when built;
/// killed at destruction.
class Daemon {
 public:
  explicit Daemon(const std::string& policy, const std::vector<std::string>& more = {},
                  const std::function<void()>& before_exec = {});

  [[nodiscard]] bool ready() const { return !http_.empty(); }
  [[nodiscard]] const std::string& http() const { return http_; }
  [[nodiscard]] std::string admin() const { return process_.line_after("listening admin ").value_or("127.0.0.1:1"); }
  [[nodiscard]] std::string grpc() const { return process_.line_after("listening grpc ").value_or("127.0.0.1:1"); }
  [[nodiscard]] Process& process() { return process_; }
  [[nodiscard]] const Process& process() const { return process_; }

 private:
  Process process_;
  std::string http_;
};

struct Ended {
  int exit_code = -1;
  std::string output;
};

/// Runs `sluice` with arguments to its end.
[[nodiscard]] Ended run_sluice(const std::vector<std::string>& arguments);

}  // namespace sluice::test
