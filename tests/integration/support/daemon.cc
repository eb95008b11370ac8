#include "tests/integration/support/daemon.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace sluice::test {
namespace {

std::vector<std::string> serve_command(const std::string& policy, const std::vector<std::string>& more) {
  std::vector<std::string> command{sluice_binary(), "serve", "--policy", policy};
  const auto given = [&](std::string_view flag) { return std::ranges::find(more, flag) != more.end(); };
  if (!given("--listen.http")) command.insert(command.end(), {"--listen.http", "127.0.0.1:0"});
  if (!given("--listen.admin")) command.insert(command.end(), {"--listen.admin", "127.0.0.1:0"});
  if (!given("--listen.grpc")) command.insert(command.end(), {"--listen.grpc", "off"});
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

}  // namespace

std::string sluice_binary() { return SLUICE_BINARY; }

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "sluice-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::write(const std::string& name, std::string_view text) const {
  const std::filesystem::path file = path_ / name;
  std::ofstream(file, std::ios::binary) << text;
  return file.string();
}

Daemon::Daemon(const std::string& policy, const std::vector<std::string>& more,
               const std::function<void()>& before_exec)
    : process_(serve_command(policy, more), before_exec), http_(process_.line_after("listening http ").value_or("")) {}

Ended run_sluice(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{sluice_binary()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Process process(command);
  const std::optional<int> exit_code = process.wait();
  return {.exit_code = exit_code.value_or(-1), .output = process.output()};
}

}  // namespace sluice::test
