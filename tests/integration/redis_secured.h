// Redis as production runs it, for tests: TLS with certificates on both sides, and a user with the least rights.
#pragma once

#include <string>
#include <string_view>

#include "store/redis/target.h"
#include "tests/integration/redis_sets.h"
#include "tests/integration/support/certificates.h"
#include "tests/integration/support/server.h"

namespace sluice::testing {

/// What servers and clients of one such Redis need. Servers made with it must end before it does.
class SecuredRedis {
 public:
  /// The user has the rights that docs/operations.md tells below this title.
  explicit SecuredRedis(std::string_view title) : title_(title) {}

  /// Of servers and sentinels: TLS for clients that show a certificate, the default user with a password, the user
  /// "sluice" with the manual's rights.
  [[nodiscard]] SetOptions servers() const;
  /// Of one server alone.
  [[nodiscard]] RedisServer server() const;
  /// How "sluice" gets in. The password is in a file.
  [[nodiscard]] store::redis::Access access() const;
  [[nodiscard]] const Certificates& certificates() const { return certificates_; }
  /// What the password's file says from now on.
  void write_password(const std::string& password) const { folder_.write("password", password + "\n"); }

 private:
  const std::string title_;
  const ServerFolder folder_{"secrets"};
  const Certificates certificates_{folder_.path()};
};

}  // namespace sluice::testing
