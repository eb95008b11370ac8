#include "tests/integration/support/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace sluice::testing {

namespace {

// Below the ports that the system gives to outgoing connections, so that none of these takes one while its server is
// down; and as many again above are free for the buses of cluster nodes.
constexpr std::uint16_t kFirstPort = 10'000;
constexpr std::uint16_t kPorts = 10'000;
constexpr std::uint16_t kBus = 10'000;  // so far above a node's port is its bus

/// Has no other process reserved the port? Then it is this one's until its end, by a name that goes with it.
bool reserve(std::uint16_t port) {
  const std::string name = "sluice-test-port-" + std::to_string(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(&address.sun_path[1], name.size());  // the first byte stays 0: no file
  const int socket_fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(socket_fd, reinterpret_cast<sockaddr*>(&address), size) == 0) return true;
  ::close(socket_fd);
  return false;
}

bool can_bind(std::uint16_t port) {
  const int socket_fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const bool bound = ::bind(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(socket_fd);
  return bound;
}

/// Has each thread of the process group stopped (or ended)?
bool are_stopped(pid_t group) {
  std::error_code gone;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    for (std::filesystem::directory_iterator thread(process.path() / "task", gone), end; !gone && thread != end;
         thread.increment(gone)) {
      std::ifstream in(thread->path() / "stat");
      std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
      // Behind the name, which may have any characters: state, parent, process group.
      std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
      char state = 0;
      pid_t parent = 0;
      pid_t its_group = 0;
      fields >> state >> parent >> its_group;
      if (its_group == group && std::string_view("TtZX").find(state) == std::string_view::npos) return false;
    }
    gone.clear();
  }
  return true;
}

}  // namespace

std::uint16_t free_tcp_port() {
  static std::atomic<unsigned> next{std::random_device()()};
  for (unsigned attempt = 0; attempt < kPorts; ++attempt) {
    const auto port = static_cast<std::uint16_t>(kFirstPort + next++ % kPorts);
    if (can_bind(port) && can_bind(port + kBus) && reserve(port)) return port;
  }
  throw std::runtime_error("no free port");
}

bool answers_tcp(std::uint16_t port) {
  const int socket_fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const bool connected = ::connect(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(socket_fd);
  return connected;
}

void ServerProcess::start(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                          const std::filesystem::path& log) {
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<std::string> variables = environment;
  const std::string log_name = log.string();
  const pid_t parent = ::getpid();
  id_ = ::fork();
  if (id_ == 0) {
    ::setpgid(0, 0);
    // Does not outlive the test, however that ends; children of its own end with it by themselves.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    for (std::string& variable : variables) ::putenv(variable.data());
    const int out = ::open(log_name.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int in = ::open("/dev/null", O_RDONLY);
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::dup2(out, 2);
    ::execvp(arguments[0], arguments.data());
    constexpr std::string_view why = "it is not installed, or cannot be run\n";
    (void)!::write(2, why.data(), why.size());
    ::_exit(127);
  }
  if (id_ < 0) throw std::runtime_error("cannot start " + words[0]);
  // Here, too: it may be killed before it has come that far itself.
  ::setpgid(id_, id_);
}

bool ServerProcess::has_ended() {
  if (id_ <= 0) return true;
  int status = 0;
  if (::waitpid(id_, &status, WNOHANG) != id_) return false;
  id_ = 0;
  return true;
}

void ServerProcess::signal(int number) const {
  if (id_ > 0) ::kill(-id_, number);
}

void ServerProcess::pause() const {
  signal(SIGSTOP);
  // On a busy machine its threads run on until the first of them has taken the signal.
  while (id_ > 0 && !are_stopped(id_)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void ServerProcess::kill() {
  if (id_ <= 0) return;
  ::kill(-id_, SIGKILL);
  ::waitpid(id_, nullptr, 0);
  id_ = 0;
}

ServerFolder::ServerFolder(const std::string& name) {
  std::string pattern = (std::filesystem::temp_directory_path() / ("sluice-" + name + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a folder for " + name);
  path_ = pattern;
}

ServerFolder::~ServerFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void ServerFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name) << text;
}

void wait_until_ready(ServerProcess& process, const std::string& name, const std::filesystem::path& log,
                      const std::function<bool()>& ready) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  while (std::chrono::steady_clock::now() < end && !process.has_ended()) {
    if (ready()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::ifstream in(log);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  throw std::runtime_error(name + " is not ready:\n" + text.substr(text.size() > 2000 ? text.size() - 2000 : 0));
}

}  // namespace sluice::testing
