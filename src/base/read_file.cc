#include "base/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace sluice {
namespace {

struct Descriptor {
  explicit Descriptor(int number) : value(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
  int value;
};

Error failure(int number) { return Error{std::generic_category().message(number)}; }

Error irregular(mode_t mode) {
  if (S_ISDIR(mode)) return failure(EISDIR);
  std::string what = "a device";
  if (S_ISFIFO(mode)) what = "a pipe";
  if (S_ISSOCK(mode)) what = "a socket";
  return Error{"it is " + what + ", not a regular file"};
}

}  // namespace

Result<std::string> read_regular_file(const std::string& path, std::size_t most, struct stat* status) {
  // Not to wait for somebody to write into a pipe.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat found{};
  if (file.value < 0 || ::fstat(file.value, &found) != 0) {
    const int number = errno;
    // A socket cannot be opened at all, which the system tells in words that help nobody.
    if (auto refusal = refusal_of_irregular(path)) return *std::move(refusal);
    return failure(number);
  }
  if (status != nullptr) *status = found;
  if (!S_ISREG(found.st_mode)) return irregular(found.st_mode);
  std::string text;
  std::array<char, std::size_t{16} * 1024> chunk{};
  while (text.size() < most) {
    const ssize_t size = ::read(file.value, chunk.data(), std::min(chunk.size(), most - text.size()));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return failure(errno);
    if (size == 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(size));
  }
  return text;
}

Result<std::string> read_password(const std::string& path) {
  constexpr std::size_t most = 64U << 10U;
  const auto text = read_regular_file(path, most);
  if (!text) return Error{"cannot be read: " + text.error().message};
  std::string line = text->substr(0, text->find('\n'));
  if (line.ends_with('\r')) line.pop_back();
  if (line.empty()) return Error{"its first line, the password, is empty"};
  return line;
}

std::optional<Error> refusal_of_irregular(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode)) return std::nullopt;
  return irregular(found.st_mode);
}

}  // namespace sluice
