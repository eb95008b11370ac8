#include "server/transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <tuple>

#include "sluice/http_request.h"

namespace sluice::server {

namespace asio = boost::asio;

Transport::Transport(Worker& worker, Socket socket, OpenCount* open, std::unique_ptr<tls::Channel> tls)
    : count_(worker.metrics, open), socket_(std::move(socket)), tls_(std::move(tls)) {
  if (tls_ != nullptr && !tls_->attach(socket_.native_handle())) close();
}

std::size_t Transport::write_some(std::string_view bytes, ErrorCode& error) {
  if (tls_ == nullptr) return socket_.write_some(asio::buffer(bytes), error);
  if (!socket_.is_open()) {
    error = asio::error::not_connected;
    return 0;
  }
  std::size_t size = 0;
  const tls::Step step = tls_->write(bytes, size);
  error = {};
  if (step == tls::Step::ended || step == tls::Step::failed) {
    error = asio::error::connection_reset;
  } else if (step != tls::Step::done) {
    wait_of_write_ = wait_for(step);
    if (size == 0) error = asio::error::would_block;
  }
  return size;
}

Transport::Peek Transport::peek() {
  if (tls_ != nullptr) {
    const tls::Step step = tls_->peek();
    if (step == tls::Step::done) return Peek::bytes;
    return step == tls::Step::ended || step == tls::Step::failed ? Peek::ended : Peek::nothing;
  }
  char next = 0;
  const ssize_t size = ::recv(socket_.native_handle(), &next, 1, MSG_PEEK);
  if (size > 0) return Peek::bytes;
  return size < 0 && (errno == EAGAIN || errno == EINTR) ? Peek::nothing : Peek::ended;
}

bool Transport::has_arrived() {
  if (tls_ != nullptr && tls_->has_pending()) return true;
  char next = 0;
  return ::recv(socket_.native_handle(), &next, 1, MSG_PEEK) > 0;
}

void Transport::cork() {
  const int on = 1;
  // Best effort: other sockets than those of TCP have no such option.
  std::ignore = ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_CORK, &on, sizeof on);
}

void Transport::shutdown_send() {
  if (tls_ != nullptr) tls_->end();
  ErrorCode ignored;
  std::ignore = socket_.shutdown(Socket::shutdown_send, ignored);
}

void Transport::close() {
  if (!socket_.is_open()) return;
  if (tls_ != nullptr) tls_->end();
  ErrorCode ignored;
  std::ignore = socket_.close(ignored);
}

std::string Transport::peer_address() const {
  ErrorCode error;
  // The own end's name: it is known also when the peer has gone.
  const auto here = socket_.local_endpoint(error);
  if (!error && here.protocol().family() == AF_UNIX) return std::string(kUnixPeer);
  const auto peer = socket_.remote_endpoint(error);
  const int family = error ? AF_UNSPEC : peer.protocol().family();
  if (family != AF_INET && family != AF_INET6) return {};
  asio::ip::tcp::endpoint endpoint;
  if (peer.size() > endpoint.capacity()) return {};
  std::memcpy(endpoint.data(), peer.data(), peer.size());
  endpoint.resize(peer.size());
  return endpoint.address().to_string();
}

}  // namespace sluice::server
