#include "queue/exec_deliverer.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::queue {
namespace {

constexpr int kRefused = 100;
// The shell's words for a command that cannot be run or is not there.
constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;

using boost::system::error_code;

/// A file without a name that holds the body, so that no pipe can fill up.
int file_of(const std::string& body) {
  const int file = ::memfd_create("body", MFD_CLOEXEC);
  if (file < 0) return -1;
  for (std::size_t written = 0; written < body.size();) {
    const ssize_t size = ::write(file, body.data() + written, body.size() - written);
    if (size < 0) {
      ::close(file);
      return -1;
    }
    written += static_cast<std::size_t>(size);
  }
  ::lseek(file, 0, SEEK_SET);
  return file;
}

/// A child on its way.
struct Child : std::enable_shared_from_this<Child> {
  Child(boost::asio::io_context& io, pid_t its_id, int its_descriptor, std::string its_command, Deliverer::Done whom)
      : id(its_id), ended(io, its_descriptor), timer(io), command(std::move(its_command)), done(std::move(whom)) {}

  void watch(std::chrono::nanoseconds timeout) {
    ended.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [self = shared_from_this()](const error_code& error) {
                       if (!error) self->end();
                     });
    timer.expires_after(timeout);
    timer.async_wait([self = shared_from_this()](const error_code& error) {
      if (error) return;
      self->is_late = true;
      ::kill(-self->id, SIGKILL);
    });
  }

  void end() {
    int status = 0;
    ::waitpid(id, &status, 0);
    timer.cancel();
    Outcome outcome;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.status = code;
    if (code == kCannotRun || code == kNotFound) {
      outcome.kind = Outcome::Kind::hindered;
      outcome.reason = "the command '" + command + "' ended with " + std::to_string(code) +
                       (code == kNotFound ? ": not found" : ": cannot be run");
    } else if (code != 0) {
      outcome.kind = code == kRefused ? Outcome::Kind::refused : Outcome::Kind::retry;
      outcome.reason = is_late ? "the command took too long" : "the command ended with " + std::to_string(code);
    }
    std::exchange(done, nullptr)(std::move(outcome));
  }

  const pid_t id;
  boost::asio::posix::stream_descriptor ended;
  boost::asio::steady_timer timer;
  const std::string command;
  Deliverer::Done done;
  bool is_late = false;
};

std::vector<std::string> environment_of(const Attempt& attempt) {
  std::vector<std::string> lines;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line) lines.emplace_back(*line);
  const Message& message = *attempt.message;
  const auto add = [&](const char* name, const std::string& value) {
    std::string& line = lines.emplace_back("SLUICE_");
    line += name;
    line += '=';
    line += value.substr(0, value.find('\0'));  // it would end there
  };
  add("TICKET", message.ticket);
  add("KEY", message.key);
  add("METHOD", message.method);
  add("PATH", message.path);
  add("BODY_REFERENCE", message.body_reference);
  add("ATTEMPT", std::to_string(attempt.number));
  add("MAY_BE_DUPLICATE", attempt.may_be_duplicate ? "true" : "false");
  return lines;
}

/// Its id, or 0 with `errno`'s number in `error`.
pid_t spawn(const std::string& command, const Attempt& attempt, int body, int& error) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, body, STDIN_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  sigset_t usual;  // the drainer ignores it, and a pipeline within the command counts on it
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::vector<std::string> lines = environment_of(attempt);
  std::vector<char*> environment;
  environment.reserve(lines.size() + 1);
  for (std::string& line : lines) environment.push_back(line.data());
  environment.push_back(nullptr);
  std::string shell = "sh";
  std::string flag = "-c";
  std::string text = command;
  std::array<char*, 4> arguments{shell.data(), flag.data(), text.data(), nullptr};
  pid_t id = -1;
  error = ::posix_spawn(&id, "/bin/sh", &actions, &attributes, arguments.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? id : 0;
}

}  // namespace

ExecDeliverer::ExecDeliverer(boost::asio::io_context& io, std::string command, std::chrono::nanoseconds timeout)
    : io_(io), command_(std::move(command)), timeout_(timeout) {}

void ExecDeliverer::start(const Attempt& attempt, Done done) {
  const auto fail = [&](const std::string& why, Outcome::Kind kind = Outcome::Kind::hindered) {
    done({.kind = kind, .status = 0, .reason = why});
  };
  const int body = file_of(attempt.message->body);
  if (body < 0) {
    fail("no file for the body");
    return;
  }
  int error = 0;
  const pid_t id = spawn(command_, attempt, body, error);
  ::close(body);
  if (id == 0) {
    // Too long is this request's environment; all else would be so for any.
    fail(std::string("the command cannot be started: ") + std::strerror(error),
         error == E2BIG ? Outcome::Kind::retry : Outcome::Kind::hindered);
    return;
  }
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, id, 0));
  if (descriptor < 0) {
    ::kill(-id, SIGKILL);
    ::waitpid(id, nullptr, 0);
    fail("the command cannot be watched");
    return;
  }
  std::make_shared<Child>(io_, id, descriptor, command_, std::move(done))->watch(timeout_);
}

}  // namespace sluice::queue
