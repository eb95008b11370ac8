// TLS on one connection, the server's end.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sluice::tls {

/// What became of a step, or what it waits for. `ended`: the peer sends no more. `failed`: nothing more can be said.
enum class Step : std::uint8_t { done, wants_readable, wants_writable, ended, failed };

/// Reads and writes a non-blocking socket by its descriptor, which belongs to somebody else and must outlive this.
/// Never waits; nothing throws. Not thread-safe. An idle one holds no buffers.
class Channel {
 public:
  explicit Channel(SSL* ssl) : ssl_(ssl) {}

  /// Before everything else. Precondition: the socket is non-blocking.
  [[nodiscard]] bool attach(int descriptor);
  /// To be repeated until it is done or failed.
  [[nodiscard]] Step shake_hands();
  /// Bytes that have come, `size` of them; `done` when there are any.
  [[nodiscard]] Step read(std::span<char> room, std::size_t& size);
  /// Is there a byte to read? It stays there.
  [[nodiscard]] Step peek();
  /// Sends a part of `bytes`, `size` of them. What was wanted once must be offered again, with more behind it or not.
  [[nodiscard]] Step write(std::string_view bytes, std::size_t& size);
  /// Tells the peer that no more comes, as far as the socket takes it.
  void end();
  /// Bytes have been taken from the socket and not been read.
  [[nodiscard]] bool has_pending() const { return SSL_has_pending(ssl_.get()) == 1; }

  /// Has the client shown a certificate? It is of a trusted authority then, or hands had not been shaken.
  [[nodiscard]] bool has_client_certificate() const;
  /// Why a step failed, in words.
  [[nodiscard]] std::string reason() const;

 private:
  struct Deleter {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  [[nodiscard]] Step outcome(int result);

  std::unique_ptr<SSL, Deleter> ssl_;
  std::string reason_;
};

}  // namespace sluice::tls
