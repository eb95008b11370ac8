// How all connections of a store begin.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "store/redis/connection.h"
#include "store/redis/credentials.h"
#include "store/redis/notices.h"

namespace sluice::store::redis {

/// A greeting with credentials that may lie in a file. Not thread-safe.
class Login {
 public:
  /// `notices`: what other threads' logins have said, so that it is not said again; null: there are none. Must outlive
  /// this.
  Login(CredentialOptions credentials, Hello hello, Notices* notices = nullptr)
      : file_(credentials.password_file),
        credentials_(std::move(credentials)),
        hello_(std::move(hello)),
        notices_(notices) {}

  /// To be called before each connection: a password that has changed counts from here on.
  std::optional<Error> refresh() {
    auto error = credentials_.refresh();
    Notices& notices = notices_ != nullptr ? *notices_ : own_notices_;
    if (!error) {
      if (std::exchange(has_failed_, false)) notices.forget(file_);
    } else {
      has_failed_ = true;
      if (notices.is_news(file_, error->message)) {
        log::warn("redis: the password read before stays in use", {{"detail", error->message}});
      }
    }
    hello_.user = credentials_.user();
    hello_.password = credentials_.password();
    return error;
  }
  [[nodiscard]] const Hello& hello() const { return hello_; }

 private:
  const std::string file_;
  Credentials credentials_;
  Hello hello_;
  Notices* const notices_;
  Notices own_notices_;
  bool has_failed_ = false;
};

}  // namespace sluice::store::redis
