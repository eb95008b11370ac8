#include "server/proxy_handshake.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "identity/proxy_protocol.h"

namespace sluice::server {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
using identity::ProxyHeader;

// Balancers send the header at once.
constexpr std::chrono::seconds kPatience{5};
constexpr std::size_t kMostWaiting = 4096;
constexpr std::string_view kLeft = "it ended before its PROXY header was whole";
constexpr std::chrono::minutes kTellEvery{1};
static_assert(identity::kMaxProxyHeader == 4096 && kPatience.count() == 5);  // as the log says

}  // namespace

class ProxyHandshakes::One : public std::enable_shared_from_this<One> {
 public:
  One(ProxyHandshakes& owner, int descriptor, tcp protocol)
      : owner_(owner), protocol_(protocol), socket_(owner.io_), timer_(owner.io_) {
    error_code error;
    socket_.assign(protocol, descriptor, error);
    if (error) ::close(descriptor);
  }

  void start() {
    timer_.expires_after(kPatience);
    timer_.async_wait([self = shared_from_this()](const error_code& cancelled) {
      if (!cancelled) self->refuse("no whole PROXY header came in 5 s");
    });
    wait();
  }

  void close() {
    error_code ignored;
    std::ignore = socket_.close(ignored);
    timer_.cancel();
  }

  /// Looks first and takes then: what follows the header is the session's.
  void readable() {
    std::array<char, identity::kMaxProxyHeader> bytes{};
    const std::size_t room = bytes.size() - header_.size();
    const ssize_t size = ::recv(socket_.native_handle(), bytes.data(), room, MSG_PEEK);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
      wait();
      return;
    }
    if (size <= 0) {
      refuse(kLeft);
      return;
    }
    const std::size_t before = header_.size();
    header_.append(bytes.data(), static_cast<std::size_t>(size));
    const ProxyHeader header = identity::read_proxy_header(header_);
    if (header.state == ProxyHeader::State::malformed) {
      refuse(header.is_too_long ? "its PROXY header is longer than 4096 bytes, which are taken at most"
                                : "it does not begin with a PROXY header of version 1 or 2");
      return;
    }
    const bool is_whole = header.state == ProxyHeader::State::complete;
    // They are there, so they come at once.
    const std::size_t taken = is_whole ? header.size - before : static_cast<std::size_t>(size);
    std::ignore = ::recv(socket_.native_handle(), bytes.data(), taken, 0);
    if (is_whole) {
      finish(header);
    } else {
      wait();
    }
  }

 private:
  void wait() {
    socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](const error_code& error) {
      if (!self->socket_.is_open()) return;
      if (error) {
        self->refuse(kLeft);
      } else {
        self->readable();
      }
    });
  }

  void finish(const ProxyHeader& header) {
    std::string client;
    if (header.client) header.client->append_to(client);
    timer_.cancel();
    error_code error;
    const int descriptor = socket_.release(error);
    const auto self = shared_from_this();
    owner_.end(self);
    if (!error) owner_.done_(descriptor, protocol_, std::move(client));
  }

  /// `why`: for the log.
  void refuse(std::string_view why) {
    const auto self = shared_from_this();
    owner_.tell(socket_, why);
    close();
    owner_.end(self);
    owner_.refused_();
  }

  ProxyHandshakes& owner_;
  tcp protocol_;
  tcp::socket socket_;
  boost::asio::steady_timer timer_;
  std::string header_;
};

ProxyHandshakes::ProxyHandshakes(boost::asio::io_context& io, Done done, Refused refused)
    : io_(io), done_(std::move(done)), refused_(std::move(refused)) {}

// NOLINTNEXTLINE(bugprone-exception-escape): what may throw is allocating, and an empty set allocates nothing.
ProxyHandshakes::~ProxyHandshakes() { close(); }

void ProxyHandshakes::begin(int descriptor, tcp protocol) {
  if (waiting_.size() >= kMostWaiting) {
    ::close(descriptor);
    refused_();
    return;
  }
  const auto one = std::make_shared<One>(*this, descriptor, protocol);
  waiting_.insert(one);
  one->start();
}

void ProxyHandshakes::stop() {
  const auto waiting = waiting_;
  for (const auto& one : waiting) one->readable();
  close();
}

void ProxyHandshakes::close() {
  for (const auto& one : std::exchange(waiting_, {})) one->close();
}

void ProxyHandshakes::tell(const tcp::socket& socket, std::string_view why) {
  const auto now = std::chrono::steady_clock::now();
  ++untold_;
  if (now < tell_again_) return;
  error_code error;
  const auto here = socket.local_endpoint(error);
  const auto peer = socket.remote_endpoint(error);
  log::warn("a connection of listen.proxy_protocol was closed; others are told once a minute",
            {{"reason", why},
             {"from", error ? std::string("-") : peer.address().to_string()},
             {"port", error ? std::string("-") : std::to_string(here.port())},
             {"closed", std::to_string(std::exchange(untold_, 0))}});
  tell_again_ = now + kTellEvery;
}

void ProxyHandshakes::end(const std::shared_ptr<One>& one) { waiting_.erase(one); }

}  // namespace sluice::server
