// Where a Redis server is, read out of its URL.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice::store::redis {

/// A server and how to log in there.
struct Endpoint {
  std::string host;  ///< name or address; empty: a Unix socket
  std::uint16_t port = 6379;
  std::string path;      ///< Unix socket
  std::string user;      ///< empty: the default user
  std::string password;  ///< empty: no AUTH
  int database = 0;      ///< 0 … 2^31 − 1

  /// host:port or the path, for logs: never the password.
  [[nodiscard]] std::string to_text() const;
};

/// redis://[[user]:password@]host[:port][/database] or unix://[[user]:password@]/path[?db=N]. User and password may be
/// percent-encoded; an IPv6 address stands in brackets. The error never shows the password.
[[nodiscard]] Result<Endpoint> parse_url(std::string_view url);

}  // namespace sluice::store::redis
