// Where Redis is, read out of a URL.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::store::redis {

/// One server. A value.
struct Address {
  std::string host;  ///< name or address; empty: a Unix socket
  std::uint16_t port = 6379;
  std::string path{};  // NOLINT(readability-redundant-member-init): gcc warns of initializers without it

  /// host:port or the path, for logs.
  [[nodiscard]] std::string to_text() const;
  friend bool operator==(const Address&, const Address&) = default;
};

/// How the servers of one Redis work together.
enum class Topology : std::uint8_t {
  standalone,  ///< one server
  sentinel,    ///< a master and replicas, watched by sentinels
  cluster      ///< keys are spread over masters
};

/// What a URL says.
struct Target {
  Topology topology = Topology::standalone;
  std::vector<Address> nodes;  ///< standalone: one; sentinel: the sentinels; cluster: any of its nodes
  std::string master;          ///< sentinel: the master's name
  std::string user;            ///< empty: the default user
  std::string password;        ///< empty: no AUTH
  int database = 0;            ///< 0 … 2^31 − 1; cluster: 0
  bool tls = false;

  /// For logs: never the password.
  [[nodiscard]] std::string to_text() const;
};

/// Reads one of
///   redis://[[user]:password@]host[:port][/database]
///   redis://[[user]:password@]host[:port],host[:port]…                 several addresses: a cluster
///   redis+cluster://[[user]:password@]host[:port][,host[:port]…]       also redis-cluster://
///   redis-sentinel://[[user]:password@]host[:port][,host[:port]…]/master[/database]     also redis+sentinel://, and
///                                                                       [/database]#master
///   unix://[[user]:password@]/path[?db=N]
/// With "rediss" for "redis": over TLS. User and password, which may be percent-encoded, are those of the data servers;
/// a user may stand alone, and then needs a password from elsewhere. An IPv6 address stands in brackets. The port is
/// 6379, a sentinel's 26379. With a `master` the addresses of redis:// are sentinels, too. The error never shows the
/// password.
[[nodiscard]] Result<Target> parse_url(std::string_view url, std::string_view master = {});

}  // namespace sluice::store::redis
