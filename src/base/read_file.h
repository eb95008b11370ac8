// The bytes of files that users name: regular files alone, so that nothing waits for a pipe's other end.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"

namespace sluice {

/// The first `most` bytes of a regular file, or of the one a link leads to. A pipe, a socket, a device or a directory
/// is an error at once, and none of them is read. `status`, when given, gets the state of what was opened, also of what
/// is then refused. Errors say why, and name no path. Thread-safe; blocks for as long as the file system does.
[[nodiscard]] Result<std::string> read_regular_file(const std::string& path, std::size_t most,
                                                    struct stat* status = nullptr);

/// The first line of a regular file without its end, LF or CR LF: a password. The first 64 KiB are looked at. Errors as
/// above, and that the line is empty.
[[nodiscard]] Result<std::string> read_password(const std::string& path);

/// Why a library that would open `path` by itself must not. Nothing: it is a regular file, or there is none, which the
/// library tells.
[[nodiscard]] std::optional<Error> refusal_of_irregular(const std::string& path);

}  // namespace sluice
