#include "tests/integration/support/tls_client.h"

#include <openssl/err.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <utility>

#include "tests/integration/support/http_client.h"

namespace sluice::test {

TlsClient::TlsClient(const std::string& address, const TlsClientOptions& options)
    : socket_(connect_to(address)), context_(SSL_CTX_new(TLS_client_method())) {
  std::signal(SIGPIPE, SIG_IGN);
  SSL_CTX& context = *context_;
  SSL_CTX_load_verify_file(&context, options.ca.c_str());
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER, nullptr);
  if (options.version != 0) {
    SSL_CTX_set_security_level(&context, 0);
    SSL_CTX_set_min_proto_version(&context, options.version);
    SSL_CTX_set_max_proto_version(&context, options.version);
  }
  if (!options.cert.empty()) {
    SSL_CTX_use_certificate_chain_file(&context, options.cert.c_str());
    SSL_CTX_use_PrivateKey_file(&context, options.key.c_str(), SSL_FILETYPE_PEM);
  }
  if (!options.alpn.empty()) {
    const std::string wire = static_cast<char>(options.alpn.size()) + options.alpn;
    SSL_CTX_set_alpn_protos(&context, reinterpret_cast<const unsigned char*>(wire.data()),
                            static_cast<unsigned>(wire.size()));
  }
  ssl_.reset(SSL_new(&context));
  SSL_set_fd(ssl_.get(), socket_);
  ERR_clear_error();
  if (const int result = SSL_connect(ssl_.get()); result != 1) fail(result);
}

TlsClient::~TlsClient() {
  if (socket_ >= 0) ::close(socket_);
}

void TlsClient::fail(int result) {
  const int kind = SSL_get_error(ssl_.get(), result);
  const unsigned long code = ERR_get_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  error_ = reason != nullptr ? reason : "SSL_get_error " + std::to_string(kind);
  ERR_clear_error();
}

void TlsClient::send(std::string_view bytes) {
  if (!good()) return;
  if (const int result = SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())); result <= 0) {
    // What the server has said about it is there to be read.
    while (fill()) {
    }
  }
}

bool TlsClient::fill() {
  if (!good()) return false;
  std::array<char, 16384> bytes{};
  const int result = SSL_read(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
  if (result <= 0) {
    if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_ZERO_RETURN) fail(result);
    return false;
  }
  buffer_.append(bytes.data(), static_cast<std::size_t>(result));
  return true;
}

std::string TlsClient::receive_to(std::string_view mark) {
  std::size_t at = buffer_.find(mark);
  while (at == std::string::npos && fill()) at = buffer_.find(mark);
  const std::size_t size = at == std::string::npos ? buffer_.size() : at + mark.size();
  std::string taken = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return taken;
}

std::string TlsClient::receive(std::size_t size) {
  while (buffer_.size() < size && fill()) {
  }
  std::string taken = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return taken;
}

std::string TlsClient::receive_all() {
  while (fill()) {
  }
  return std::exchange(buffer_, {});
}

std::string TlsClient::get(const std::string& path, std::string_view last) {
  send("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n");
  std::string answer = receive_to("\r\n\r\n");
  answer += receive_to(last);
  return answer;
}

std::string TlsClient::protocol() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return size == 0 ? std::string() : std::string(reinterpret_cast<const char*>(name), size);
}

std::int64_t TlsClient::server_serial() const {
  const X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  std::int64_t serial = -1;
  if (certificate != nullptr) ASN1_INTEGER_get_int64(&serial, X509_get0_serialNumber(certificate));
  return serial;
}

}  // namespace sluice::test
