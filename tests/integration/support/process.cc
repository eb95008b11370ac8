#include "tests/integration/support/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <tuple>

namespace sluice::test {

Process::Process(const std::vector<std::string>& command, const std::function<void()>& before_exec) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  id_ = ::fork();
  if (id_ < 0) throw std::runtime_error("no process");
  if (id_ == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    if (before_exec) before_exec();
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  pipe_ = ends[0];
  reader_ = std::thread([this] { read(); });
}

Process::~Process() {
  if (!exit_code_) {
    signal(SIGKILL);
    std::ignore = wait();
  }
  reader_.join();
  ::close(pipe_);
}

void Process::signal(int number) const { ::kill(id_, number); }

void Process::pause() const {
  signal(SIGSTOP);
  siginfo_t ignored;
  ::waitid(P_PID, static_cast<id_t>(id_), &ignored, WSTOPPED | WEXITED | WNOWAIT);
}

std::optional<int> Process::wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!exit_code_) {
    int status = 0;
    if (::waitpid(id_, &status, WNOHANG) == id_) {
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      break;
    }
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return at_end_; });
  return exit_code_;
}

std::string Process::output() const {
  const std::scoped_lock lock(mutex_);
  return output_;
}

std::optional<std::string> Process::line_after(std::string_view mark, std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  std::optional<std::string> found;
  changed_.wait_for(lock, timeout, [&] {
    const std::size_t begin = output_.find(mark);
    const std::size_t end = begin == std::string::npos ? begin : output_.find('\n', begin);
    if (end != std::string::npos) found = output_.substr(begin + mark.size(), end - begin - mark.size());
    return found || at_end_;
  });
  return found;
}

void Process::read() {
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = ::read(pipe_, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    const std::scoped_lock lock(mutex_);
    if (count <= 0) {
      at_end_ = true;
    } else {
      output_.append(buffer.data(), static_cast<std::size_t>(count));
    }
    changed_.notify_all();
    if (count <= 0) return;
  }
}

}  // namespace sluice::test
