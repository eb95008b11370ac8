// How all connections of a store begin.
#pragma once

#include <string>

#include "base/log.h"
#include "store/redis/connection.h"
#include "store/redis/credentials.h"

namespace sluice::store::redis {

/// A greeting with credentials that may lie in a file. Not thread-safe.
class Login {
 public:
  Login(CredentialOptions credentials, Hello hello) : credentials_(std::move(credentials)), hello_(std::move(hello)) {}

  /// To be called before each connection: a password that has changed counts from here on.
  std::optional<Error> refresh() {
    auto error = credentials_.refresh();
    if (error && (!failed_ || *failed_ != error->message)) {
      log::warn("redis: the password read before stays in use", {{"detail", error->message}});
    }
    failed_ = error ? std::optional(error->message) : std::nullopt;
    hello_.user = credentials_.user();
    hello_.password = credentials_.password();
    return error;
  }
  [[nodiscard]] const Hello& hello() const { return hello_; }

 private:
  Credentials credentials_;
  Hello hello_;
  std::optional<std::string> failed_;  ///< what was said of it last
};

}  // namespace sluice::store::redis
