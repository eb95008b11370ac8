// Names of the files that TLS to Redis needs.
#pragma once

#include <string>

namespace sluice::store::redis {

/// All PEM. A value.
struct TlsFiles {
  std::string ca;           ///< certificates of the authorities to trust; empty: those of the system
  std::string cert;         ///< our own certificate and chain; empty: none
  std::string key;          ///< its key
  std::string server_name;  ///< what the server's certificate must name; empty: the host that is connected to
  bool verify = true;       ///< false: any certificate will do
  bool verify_name = true;  ///< false: whatever it names, if it is of a trusted authority
  /// What the names of these settings begin with, for what is told of them.
  std::string setting = "store.redis.tls";
};

}  // namespace sluice::store::redis
