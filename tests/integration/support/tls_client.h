// A TLS client for tests: blocking, over a socket of its own.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace sluice::test {

struct TlsClientOptions {
  std::string ca;    ///< whom to trust; the server's name is not looked at
  std::string cert;  ///< shown to the server; empty: none
  std::string key;
  std::string alpn;  ///< offered, one name; empty: none
  int version = 0;   ///< the only one, as TLS1_2_VERSION; 0: any
};

/// Everything gives up after kPatience. Not thread-safe.
class TlsClient {
 public:
  /// Connects and shakes hands. `address` as the daemon logs it: "127.0.0.1:8080".
  TlsClient(const std::string& address, const TlsClientOptions& options);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  /// Is it connected, and has said nothing wrong? With TLS 1.3 a server may refuse after this.
  [[nodiscard]] bool good() const { return error_.empty(); }
  /// What went wrong, in OpenSSL's words; empty: nothing.
  [[nodiscard]] const std::string& error() const { return error_; }
  void send(std::string_view bytes);
  /// What comes, up to and with `mark`; less when the connection ends before.
  [[nodiscard]] std::string receive_to(std::string_view mark);
  /// So many bytes; less when the connection ends before.
  [[nodiscard]] std::string receive(std::size_t size);
  /// All that comes until the server ends the connection.
  [[nodiscard]] std::string receive_all();
  /// "GET path" over HTTP/1.1: the whole answer, whose body must end it with `last`.
  [[nodiscard]] std::string get(const std::string& path, std::string_view last);

  [[nodiscard]] std::string protocol() const;
  /// The serial number of the server's certificate: each that tests make has its own.
  [[nodiscard]] std::int64_t server_serial() const;

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  bool fill();
  void fail(int result);

  int socket_ = -1;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
  std::string buffer_;
  std::string error_;
};

}  // namespace sluice::test
