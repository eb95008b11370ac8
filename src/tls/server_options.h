// What a listener's TLS is told.
#pragma once

#include <string>
#include <vector>

namespace sluice::tls {

/// Files are PEM. A value.
struct ServerOptions {
  std::string cert;                       ///< our certificate and its chain; empty: no TLS
  std::string key;                        ///< its key, without a passphrase
  std::string client_ca;                  ///< authorities that clients must be certified by; empty: clients show none
  std::vector<std::string> client_names;  ///< with client_ca: the certificate must name one of them; empty: any
  bool client_optional = false;           ///< with client_ca: clients may also show none

  [[nodiscard]] bool enabled() const { return !cert.empty(); }
};

}  // namespace sluice::tls
