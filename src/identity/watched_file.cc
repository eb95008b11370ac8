#include "identity/watched_file.h"

#include <sys/stat.h>

#include "base/read_file.h"

namespace sluice::identity {
namespace {

FileStamp stamp_from(const struct stat& status) {
  constexpr std::int64_t second = 1'000'000'000;
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = static_cast<std::uint64_t>(status.st_size),
          .modified = status.st_mtim.tv_sec * second + status.st_mtim.tv_nsec};
}

}  // namespace

FileStamp stamp_of(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? stamp_from(status) : FileStamp{};
}

Result<std::string> read_file(const std::string& path, FileStamp& stamp) {
  struct stat status{};
  Result<std::string> text = read_regular_file(path, kMaxWatchedBytes + 1, &status);
  stamp = stamp_from(status);
  if (!text) return Error{"cannot be read: " + text.error().message};
  if (text->size() > kMaxWatchedBytes) {
    return Error{"is longer than " + std::to_string(kMaxWatchedBytes) + " bytes, which are read at most"};
  }
  return text;
}

}  // namespace sluice::identity
