// One connection's bytes: TCP or a Unix socket, in the clear or over TLS.
#pragma once

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/system/error_code.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/tls.h"
#include "store/redis/tls_refusal.h"
#include "store/redis/url.h"

namespace sluice::store::redis {

/// Used once: opened, and closed by its owner or by failing. Everything runs on the thread of `io`, never within a call
/// of the owner. Kept alive by its pending operations.
class Wire final : public std::enable_shared_from_this<Wire> {
 public:
  class Owner {
   public:
    virtual void wire_opened() = 0;
    /// The bytes are gone after the call; more are read after it, unless the wire was closed.
    virtual void wire_read(std::string_view bytes) = 0;
    virtual void wire_written() = 0;
    /// It could not be opened or has ended; nothing more is heard of it. `why`: empty when it is not worth telling.
    virtual void wire_failed(std::string_view why) = 0;

   protected:
    ~Owner() = default;
  };

  Wire(boost::asio::io_context& io, Owner& owner) : io_(io), owner_(&owner), resolver_(io), socket_(io) {}

  /// `tls`: null, or what it is to be opened with; needed only for the call.
  void open(const Address& address, Tls* tls);
  /// Takes the bytes away. Precondition: opened, and what was written before has been written.
  void write(std::string& bytes);
  /// The owner hears nothing more.
  void close();
  /// What it waits for until it is opened, for who gives it up.
  [[nodiscard]] std::string awaited() const;

 private:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using error_code = boost::system::error_code;

  void set_up_tls(const Address& address, Tls& tls);
  void look_up(const Address& address);
  void connect_next();
  void connected();
  void opened();
  void read();
  void read_done(const error_code& error, std::size_t size);
  void write_done(const error_code& error);
  void fail(std::string_view why);
  [[nodiscard]] TlsAttempt attempt() const;

  enum class Stage : std::uint8_t { looking_up, connecting, shaking_hands };

  boost::asio::io_context& io_;
  Owner* owner_;
  boost::asio::ip::tcp::resolver resolver_;
  Socket socket_;
  Tls::Context context_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
  std::vector<Socket::endpoint_type> targets_;  ///< addresses still to be tried
  std::string expected_name_;                   ///< that the server's certificate must have
  std::string tls_setting_;
  error_code last_error_;  ///< of the target tried last
  Stage stage_ = Stage::looking_up;
  bool is_tcp_ = true;
  bool has_other_name_ = false;  ///< the certificate
  bool shows_certificate_ = false;
  bool has_heard_ = false;  ///< anything of the server
  std::string outgoing_;
  std::array<char, 16384> incoming_{};
};

}  // namespace sluice::store::redis
