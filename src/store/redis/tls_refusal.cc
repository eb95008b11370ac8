#include "store/redis/tls_refusal.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <string_view>

#include "store/redis/advice.h"

namespace sluice::store::redis {

namespace {

using boost::system::error_code;
namespace asio = boost::asio;

bool is_of_tls(const error_code& error) { return error.category() == asio::error::get_ssl_category(); }

// What a server does not like of us, which is the certificate that we show, or that we show none.
std::string certificate_advice(const TlsAttempt& attempt) {
  const std::string names = attempt.setting + ".cert and .key";
  return attempt.has_certificate
             ? "it does not accept our certificate: " + names + " must be of an authority that the server trusts"
             : "it may want a certificate of us: " + names;
}

bool is_about_certificates(const error_code& error) {
  switch (ERR_GET_REASON(static_cast<unsigned long>(error.value()))) {
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string explain_handshake(const error_code& error, const TlsAttempt& attempt) {
  std::string text = "TLS: " + error.message();
  if (attempt.has_other_name) {
    return text + ": the certificate does not name " + attempt.expected_name + ": " + attempt.setting +
           ".server_name is to be a name that it has";
  }
  if (const long result = ::SSL_get_verify_result(attempt.handle); result != X509_V_OK) {
    return text + ": " + ::X509_verify_cert_error_string(result) + ": " + attempt.setting +
           ".ca must hold the authority that gave the server its certificate";
  }
  if (is_of_tls(error) && is_about_certificates(error)) return advised(text, certificate_advice(attempt));
  if (ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_WRONG_VERSION_NUMBER ||
      error == asio::ssl::error::stream_truncated || error == asio::error::eof) {
    return advised(text, kNotTls);
  }
  return text;
}

std::string explain_silence(const error_code& error, const TlsAttempt& attempt) {
  const bool has_words = is_of_tls(error) && error != asio::ssl::error::stream_truncated;
  return advised(has_words ? "TLS: " + error.message() : "it closed the connection when TLS was up",
                 certificate_advice(attempt));
}

}  // namespace sluice::store::redis
