// A user and a password, which may lie in a file.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "store/redis/file_stamp.h"

namespace sluice::store::redis {

struct CredentialOptions {
  std::string user;           ///< empty: the default user
  std::string password;       ///< empty: no AUTH, unless there is a file
  std::string password_file;  ///< its first line is the password; empty: none
};

/// Not thread-safe.
class Credentials {
 public:
  explicit Credentials(CredentialOptions options) : options_(std::move(options)) {}

  /// Reads the file if it has changed since it was read last. The error names it; the password read before stays.
  /// To be called before each connection. Cost: one look at the file's state.
  [[nodiscard]] std::optional<Error> refresh();
  [[nodiscard]] const std::string& user() const { return options_.user; }
  [[nodiscard]] const std::string& password() const { return options_.password; }

 private:
  CredentialOptions options_;
  std::optional<FileStamp> read_;
};

}  // namespace sluice::store::redis
