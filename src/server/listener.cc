#include "server/listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/system/error_code.hpp>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/log.h"

namespace sluice::server {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr int kBacklog = 4096;
// After so many connections others of this thread's duties get their turn.
constexpr int kMostAtOnce = 64;
constexpr std::chrono::milliseconds kRest{100};

std::string text_of(const tcp::endpoint& endpoint) {
  return to_text(config::Address{.host = endpoint.address().to_string(), .port = endpoint.port(), .socket = {}});
}

error_code listen_on(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  // "All interfaces" means IPv4, too.
  if (!error && endpoint.protocol() == tcp::v6() && endpoint.address().is_unspecified()) {
    acceptor.set_option(boost::asio::ip::v6_only(false), error);
  }
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(kBacklog, error);
  if (!error) acceptor.non_blocking(true, error);
  if (error) {
    error_code ignored;
    acceptor.close(ignored);
  }
  return error;
}

// A listening socket with a path as its name, or -1 and the error.
int listen_on_path(const std::string& path, error_code& error) {
  const auto fail = [&error](int descriptor) {
    error = {errno, boost::system::system_category()};
    if (descriptor >= 0) ::close(descriptor);
    return -1;
  };
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(static_cast<char*>(name.sun_path), sizeof name.sun_path - 1);
  const auto* const address = reinterpret_cast<const sockaddr*>(&name);
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return fail(probe);
  // What a process that is gone has left behind; a file of another kind is somebody's.
  struct stat found{};
  const bool is_socket = ::lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode);
  if (is_socket && ::connect(probe, address, sizeof name) != 0 && errno == ECONNREFUSED) ::unlink(path.c_str());
  ::close(probe);
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0 || ::bind(descriptor, address, sizeof name) != 0 || ::listen(descriptor, kBacklog) != 0) {
    return fail(descriptor);
  }
  return descriptor;
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(boost::asio::io_context& io, std::string name,
                                                 const config::Address& address) {
  std::unique_ptr<Listener> listener(new Listener(io, std::move(name)));
  const auto fail = [&](const error_code& error) {
    return Error{"cannot listen on " + to_text(address) + " (listen." + listener->name_ + "): " + error.message()};
  };
  error_code error;
  if (!address.socket.empty()) {
    const int descriptor = listen_on_path(address.socket, error);
    if (!error) listener->acceptor_.assign(tcp::v4(), descriptor, error);
    if (error) return fail(error);
    listener->socket_ = address.socket;
    return listener;
  }
  if (address.host.empty()) {
    error = listen_on(listener->acceptor_, {tcp::v6(), address.port});
    if (error == boost::asio::error::address_family_not_supported ||
        error == boost::system::errc::address_not_available) {
      error = listen_on(listener->acceptor_, {tcp::v4(), address.port});
    }
    if (error) return fail(error);
    return listener;
  }
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(address.host, std::to_string(address.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error) return fail(error);
  for (const auto& candidate : found) {
    error = listen_on(listener->acceptor_, candidate.endpoint());
    if (!error) return listener;
  }
  return fail(error);
}

void Listener::start(Accepted accepted) {
  accepted_ = std::move(accepted);
  wait();
}

void Listener::close() {
  // Those who connected before the close have been told that somebody listens.
  if (accepted_) accept_waiting();
  error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  if (!socket_.empty()) ::unlink(std::exchange(socket_, {}).c_str());
}

std::string Listener::address() const {
  if (!socket_.empty()) return "unix:" + socket_;
  error_code ignored;
  return text_of(acceptor_.local_endpoint(ignored));
}

void Listener::wait() {
  acceptor_.async_wait(tcp::acceptor::wait_read, [this](const error_code& error) {
    if (!error) accept_all();
  });
}

void Listener::accept_all() {
  const int error = accept_waiting();
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      rest(error);
      return;
    default:
      wait();
  }
}

/// Accepts what waits, but not without end. Returns why no more: 0, EAGAIN, or what descriptors or memory lack.
int Listener::accept_waiting() {
  error_code ignored;
  // A Unix socket has none of Asio's protocols; to a session it is a descriptor like others.
  const tcp protocol = socket_.empty() ? acceptor_.local_endpoint(ignored).protocol() : tcp::v4();
  for (int count = 0; count < kMostAtOnce; ++count) {
    const int descriptor = ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      resting_ = false;
      accepted_(descriptor, protocol);
      continue;
    }
    switch (errno) {
      case EAGAIN:
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        return errno;
      default:  // that connection has gone already
        break;
    }
  }
  return 0;
}

void Listener::rest(int error) {
  if (!resting_) {
    resting_ = true;
    log::error("cannot accept connections, trying again until it works",
               {{"listener", name_}, {"reason", std::generic_category().message(error)}});
  }
  pause_.expires_after(kRest);
  pause_.async_wait([this](const error_code& cancelled) {
    if (!cancelled) accept_all();
  });
}

}  // namespace sluice::server
