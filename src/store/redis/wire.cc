#include "store/redis/wire.h"

#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <utility>

#include "base/log.h"
#include "store/redis/advice.h"

namespace sluice::store::redis {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;

void Wire::open(const Address& address, Tls* tls) {
  try {
    if (tls != nullptr) set_up_tls(address, *tls);
    look_up(address);
  } catch (const std::exception& problem) {
    // No thread or memory for it: tried again later, as if the server could not be reached.
    log::error("redis: cannot connect", {{"what", problem.what()}});
    asio::post(io_, [self = shared_from_this()] { self->fail({}); });
  }
}

void Wire::set_up_tls(const Address& address, Tls& tls) {
  context_ = tls.context();
  tls_.emplace(socket_, *context_);
  const std::string name = !tls.server_name().empty() ? tls.server_name() : address.host;
  expected_name_ = name;
  tls_setting_ = tls.setting();
  shows_certificate_ = tls.has_certificate();
  if (tls.verifies_name()) {
    // Within operations of this alone.
    tls_->set_verify_callback([this, names = ssl::host_name_verification(name)](bool is_trusted, auto& verification) {
      const bool is_right = names(is_trusted, verification);
      has_other_name_ = is_trusted && !is_right;
      return is_right;
    });
  }
  error_code is_name;
  asio::ip::make_address(name, is_name);
  // As the macro for it does, which casts in an old way.
  if (is_name) {
    std::string text = name;
    ::SSL_ctrl(tls_->native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, text.data());
  }
}

void Wire::look_up(const Address& address) {
  is_tcp_ = !address.host.empty();
  if (!is_tcp_) {
    targets_.emplace_back(asio::local::stream_protocol::endpoint(address.path));
    connect_next();
    return;
  }
  error_code is_name;
  const auto number = asio::ip::make_address(address.host, is_name);
  if (!is_name) {
    targets_.emplace_back(asio::ip::tcp::endpoint(number, address.port));
    connect_next();
    return;
  }
  resolver_.async_resolve(
      address.host, std::to_string(address.port), asio::ip::resolver_base::numeric_service,
      [self = shared_from_this()](const error_code& error, const asio::ip::tcp::resolver::results_type& found) {
        if (self->owner_ == nullptr) return;
        self->last_error_ = error;
        if (!error) {
          for (const auto& entry : found) self->targets_.emplace_back(entry.endpoint());
          std::ranges::reverse(self->targets_);
        }
        self->connect_next();
      });
}

// Tries the last of the targets.
void Wire::connect_next() {
  if (targets_.empty()) {
    const bool is_known = stage_ == Stage::connecting;
    fail((is_known ? "cannot connect: " : "cannot find the host: ") + last_error_.message());
    return;
  }
  stage_ = Stage::connecting;
  const Socket::endpoint_type target = targets_.back();
  targets_.pop_back();
  error_code ignored;
  socket_.close(ignored);
  socket_.async_connect(target, [self = shared_from_this()](const error_code& error) {
    if (self->owner_ == nullptr) return;
    if (error) {
      self->last_error_ = error;
      self->connect_next();
    } else {
      self->connected();
    }
  });
}

void Wire::connected() {
  if (is_tcp_) {
    error_code ignored;  // without them the connection still works
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    using Seconds = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
    using Interval = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
    socket_.set_option(Seconds(30), ignored);
    socket_.set_option(Interval(10), ignored);
  }
  if (!tls_) {
    opened();
    return;
  }
  stage_ = Stage::shaking_hands;
  tls_->async_handshake(ssl::stream_base::client, [self = shared_from_this()](const error_code& error) {
    if (self->owner_ == nullptr) return;
    if (error) {
      self->fail(explain_handshake(error, self->attempt()));
    } else {
      self->opened();
    }
  });
}

std::string Wire::awaited() const {
  switch (stage_) {
    case Stage::looking_up:
      return "cannot find the host in time";
    case Stage::connecting:
      return "cannot connect in time";
    case Stage::shaking_hands:
      return advised("no TLS in time", kNotTls);
  }
  return {};
}

TlsAttempt Wire::attempt() const {
  return {// NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): OpenSSL and Asio have no const access
          .handle = const_cast<ssl::stream<Socket&>&>(*tls_).native_handle(),
          .setting = tls_setting_,
          .expected_name = expected_name_,
          .has_other_name = has_other_name_,
          .has_certificate = shows_certificate_};
}

void Wire::opened() {
  owner_->wire_opened();
  if (owner_ != nullptr) read();
}

void Wire::read() {
  auto done = [self = shared_from_this()](const error_code& error, std::size_t size) { self->read_done(error, size); };
  if (tls_) {
    tls_->async_read_some(asio::buffer(incoming_), std::move(done));
  } else {
    socket_.async_read_some(asio::buffer(incoming_), std::move(done));
  }
}

void Wire::read_done(const error_code& error, std::size_t size) {
  if (owner_ == nullptr) return;
  if (error) {
    fail(tls_ && !has_heard_ ? explain_silence(error, attempt()) : std::string());
    return;
  }
  has_heard_ = true;
  owner_->wire_read(std::string_view(incoming_.data(), size));
  if (owner_ != nullptr) read();
}

void Wire::write(std::string& bytes) {
  // Both buffers keep their capacity.
  outgoing_.clear();
  outgoing_.swap(bytes);
  auto done = [self = shared_from_this()](const error_code& error, std::size_t) { self->write_done(error); };
  if (tls_) {
    asio::async_write(*tls_, asio::buffer(outgoing_), std::move(done));
  } else {
    asio::async_write(socket_, asio::buffer(outgoing_), std::move(done));
  }
}

void Wire::write_done(const error_code& error) {
  if (owner_ == nullptr) return;
  if (!error) {
    owner_->wire_written();
  } else if (!tls_ || has_heard_) {
    fail({});
  }
  // Else what the server has to say of it is about to be read.
}

void Wire::fail(std::string_view why) {
  if (owner_ == nullptr) return;
  Owner& owner = *owner_;
  close();
  owner.wire_failed(why);
}

void Wire::close() {
  owner_ = nullptr;
  resolver_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace sluice::store::redis
