// Has a file changed?
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::store::redis {

/// What changes when a file is written or another takes its place, as when Kubernetes swaps the link that leads to it.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t changed_s = 0;
  std::int64_t changed_ns = 0;

  /// Nothing: there is no such file, or it cannot be looked at.
  [[nodiscard]] static std::optional<FileStamp> of(const std::string& name) {
    struct stat found{};
    if (::stat(name.c_str(), &found) != 0) return std::nullopt;
    return FileStamp{.device = found.st_dev,
                     .inode = found.st_ino,
                     .size = found.st_size,
                     .changed_s = found.st_ctim.tv_sec,
                     .changed_ns = found.st_ctim.tv_nsec};
  }
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

}  // namespace sluice::store::redis
