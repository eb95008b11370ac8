// Where Redis is and how to get in there: the URL with what other options add to it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/redis/credentials.h"
#include "store/redis/tls_files.h"
#include "store/redis/url.h"

namespace sluice::store::redis {

/// What stands beside the URL. Empty: what the URL says.
struct Access {
  std::string master;  ///< name of a master: the addresses are sentinels
  std::string user;
  std::string password;
  std::string password_file;  ///< in the place of a password
  TlsFiles tls;
  std::string sentinel_user;  ///< of the sentinels themselves; they have no password unless it is named here
  std::string sentinel_password;
  std::string sentinel_password_file;
  /// As the data servers, or otherwise.
  enum class SentinelTls : unsigned char { same, on, off } sentinel_tls = SentinelTls::same;
  TlsFiles sentinel_tls_files;  ///< empty: those of the data servers
};

/// What it all comes to.
struct Resolved {
  Target target;
  CredentialOptions credentials;
  CredentialOptions sentinel_credentials;
  bool sentinel_over_tls = false;
  TlsFiles sentinel_tls;
};

/// Fails when options contradict each other or the URL is wrong; files are not looked at.
[[nodiscard]] Result<Resolved> resolve_target(std::string_view url, const Access& options);

}  // namespace sluice::store::redis
