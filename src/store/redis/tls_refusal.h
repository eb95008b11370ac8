// Why a connection over TLS came to nothing, and which setting to look at.
#pragma once

#include <openssl/ssl.h>

#include <boost/system/error_code.hpp>
#include <string>

namespace sluice::store::redis {

/// What is known of the attempt.
struct TlsAttempt {
  SSL* handle = nullptr;
  std::string setting;        ///< "store.redis.tls"
  std::string expected_name;  ///< of the server
  bool has_other_name = false;
  bool has_certificate = false;  ///< of ours, to show
};

/// Of a handshake that failed.
[[nodiscard]] std::string explain_handshake(const boost::system::error_code& error, const TlsAttempt& attempt);
/// Of a connection that ended after the handshake, before the server said anything: in TLS 1.3 that is how a server
/// refuses our certificate.
[[nodiscard]] std::string explain_silence(const boost::system::error_code& error, const TlsAttempt& attempt);

}  // namespace sluice::store::redis
