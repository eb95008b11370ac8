#include "tls/channel.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>

#include "tls/openssl_error.h"

namespace sluice::tls {

bool Channel::attach(int descriptor) { return SSL_set_fd(ssl_.get(), descriptor) == 1; }

Step Channel::outcome(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_NONE:
      return Step::done;
    case SSL_ERROR_WANT_READ:
      return Step::wants_readable;
    case SSL_ERROR_WANT_WRITE:
      return Step::wants_writable;
    case SSL_ERROR_ZERO_RETURN:
      return Step::ended;
    case SSL_ERROR_SYSCALL:
      reason_ = errno == 0 ? "the peer has closed the connection" : std::generic_category().message(errno);
      break;
    default:
      reason_ = take_reason();
      // What is wrong with a certificate says more than that something is.
      if (const long verdict = SSL_get_verify_result(ssl_.get()); verdict != X509_V_OK) {
        reason_ = verdict == X509_V_ERR_APPLICATION_VERIFICATION
                      ? "the client's certificate names nobody in client_names"
                      : std::string("the client's certificate: ") + X509_verify_cert_error_string(verdict);
      }
      break;
  }
  ERR_clear_error();
  return Step::failed;
}

Step Channel::shake_hands() {
  ERR_clear_error();
  errno = 0;
  const int result = SSL_accept(ssl_.get());
  const Step step = outcome(result);
  if (step != Step::ended) return step;
  reason_ = "the peer has closed the connection";
  return Step::failed;
}

Step Channel::read(std::span<char> room, std::size_t& size) {
  size = 0;
  while (size < room.size()) {
    ERR_clear_error();
    errno = 0;
    std::size_t more = 0;
    const int result = SSL_read_ex(ssl_.get(), room.data() + size, room.size() - size, &more);
    if (result != 1) return size > 0 ? Step::done : outcome(result);
    size += more;
  }
  return Step::done;
}

Step Channel::peek() {
  char next = 0;
  std::size_t size = 0;
  ERR_clear_error();
  errno = 0;
  return outcome(SSL_peek_ex(ssl_.get(), &next, 1, &size));
}

Step Channel::write(std::string_view bytes, std::size_t& size) {
  size = 0;
  while (size < bytes.size()) {
    ERR_clear_error();
    errno = 0;
    std::size_t more = 0;
    const int result = SSL_write_ex(ssl_.get(), bytes.data() + size, bytes.size() - size, &more);
    if (result != 1) return outcome(result);
    size += more;
  }
  return Step::done;
}

void Channel::end() {
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

bool Channel::has_client_certificate() const { return SSL_get0_peer_certificate(ssl_.get()) != nullptr; }

std::string Channel::reason() const { return reason_; }

}  // namespace sluice::tls
