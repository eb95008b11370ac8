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

#include "identity/proxy_protocol.h"

namespace sluice::server {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
using identity::ProxyHeader;

// Balancers send the header at once.
constexpr std::chrono::seconds kPatience{5};
constexpr std::size_t kMostWaiting = 4096;

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
      if (!cancelled) self->refuse();
    });
    wait();
  }

  void close() {
    error_code ignored;
    std::ignore = socket_.close(ignored);
    timer_.cancel();
  }

 private:
  void wait() {
    socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](const error_code& error) {
      if (!self->socket_.is_open()) return;
      if (error) {
        self->refuse();
      } else {
        self->readable();
      }
    });
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
      refuse();
      return;
    }
    const std::size_t before = header_.size();
    header_.append(bytes.data(), static_cast<std::size_t>(size));
    const ProxyHeader header = identity::read_proxy_header(header_);
    if (header.state == ProxyHeader::State::malformed) {
      refuse();
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

  void refuse() {
    const auto self = shared_from_this();
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

void ProxyHandshakes::close() {
  for (const auto& one : std::exchange(waiting_, {})) one->close();
}

void ProxyHandshakes::end(const std::shared_ptr<One>& one) { waiting_.erase(one); }

}  // namespace sluice::server
