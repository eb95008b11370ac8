#include "identity/watched_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace sluice::identity {
namespace {

FileStamp stamp_from(const struct stat& status) {
  constexpr std::int64_t second = 1'000'000'000;
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = static_cast<std::uint64_t>(status.st_size),
          .modified = status.st_mtim.tv_sec * second + status.st_mtim.tv_nsec};
}

struct Descriptor {
  explicit Descriptor(int number) : value(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
  int value;
};

Error failure() { return Error{"cannot be read: " + std::generic_category().message(errno)}; }

}  // namespace

FileStamp stamp_of(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? stamp_from(status) : FileStamp{};
}

Result<std::string> read_file(const std::string& path, FileStamp& stamp) {
  stamp = {};
  // Not to wait for somebody to write into a pipe.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (file.value < 0 || ::fstat(file.value, &status) != 0) return failure();
  stamp = stamp_from(status);
  if (!S_ISREG(status.st_mode)) return Error{"is no file"};
  std::string text;
  std::array<char, std::size_t{16} * 1024> chunk{};
  for (;;) {
    const ssize_t size = ::read(file.value, chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return failure();
    if (size == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(size));
    if (text.size() > kMaxWatchedBytes) {
      return Error{"is longer than " + std::to_string(kMaxWatchedBytes) + " bytes, which are read at most"};
    }
  }
}

}  // namespace sluice::identity
