#include "tests/fault/tcp_proxy.h"

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <utility>

namespace sluice::testing {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {
constexpr std::chrono::milliseconds kLook(2);  // how soon the end of a hold is seen
}  // namespace

// One client with its connection to the server. Lives as long as anything is pending.
class TcpProxy::Link : public std::enable_shared_from_this<Link> {
 public:
  Link(TcpProxy& proxy, tcp::socket client) : proxy_(proxy), client_(std::move(client)), server_(proxy.io_) {}

  void start() {
    const tcp::endpoint server(asio::ip::address_v4::loopback(), proxy_.server_port_);
    server_.async_connect(server, [self = shared_from_this()](error_code error) {
      if (error) {
        self->reset();
        return;
      }
      error_code ignored;
      self->client_.set_option(tcp::no_delay(true), ignored);
      self->server_.set_option(tcp::no_delay(true), ignored);
      self->read(self->requests_);
      self->read(self->replies_);
    });
  }

 private:
  struct Way {
    Way(tcp::socket& in, tcp::socket& out, asio::io_context& io, bool are_replies)
        : from(in), to(out), timer(io), is_from_server(are_replies) {}
    tcp::socket& from;
    tcp::socket& to;
    asio::steady_timer timer;
    bool is_from_server;
    std::array<char, 65'536> bytes{};
    std::size_t size = 0;
  };

  void read(Way& way) {
    way.from.async_read_some(
        asio::buffer(way.bytes), [self = shared_from_this(), &way](error_code error, std::size_t size) {
          if (error) {
            self->reset();
            return;
          }
          way.size = size;
          self->wait(way, std::chrono::milliseconds(way.is_from_server ? self->proxy_.delay_.load() : 0));
        });
  }

  void wait(Way& way, std::chrono::milliseconds delay) {
    if (delay.count() == 0 && !proxy_.held_) {
      pass(way);
      return;
    }
    way.timer.expires_after(std::max(delay, kLook));
    way.timer.async_wait([self = shared_from_this(), &way](error_code error) {
      if (!error) self->wait(way, std::chrono::milliseconds(0));
    });
  }

  void pass(Way& way) {
    const bool cuts = way.is_from_server && proxy_.cuts_ > 0;
    if (cuts) {
      --proxy_.cuts_;
      ++proxy_.cut_;
      way.size /= 2;
    }
    asio::async_write(way.to, asio::buffer(way.bytes, way.size),
                      [self = shared_from_this(), &way, cuts](error_code error, std::size_t) {
                        if (error || cuts) {
                          self->reset();
                        } else {
                          self->read(way);
                        }
                      });
  }

  // Both ends see a connection that broke, not one that ended.
  void reset() {
    for (tcp::socket* socket : {&client_, &server_}) {
      error_code ignored;
      socket->set_option(asio::socket_base::linger(true, 0), ignored);
      socket->close(ignored);
    }
    requests_.timer.cancel();
    replies_.timer.cancel();
  }

  TcpProxy& proxy_;
  tcp::socket client_;
  tcp::socket server_;
  Way requests_{client_, server_, proxy_.io_, false};
  Way replies_{server_, client_, proxy_.io_, true};
};

TcpProxy::TcpProxy(std::uint16_t server_port)
    : server_port_(server_port),
      acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
      port_(acceptor_.local_endpoint().port()) {
  accept();
  thread_ = std::thread([this] { io_.run(); });
}

TcpProxy::~TcpProxy() {
  io_.stop();
  thread_.join();
}

void TcpProxy::accept() {
  acceptor_.async_accept([this](error_code error, tcp::socket client) {
    if (error) return;
    ++accepted_;
    if (!refusing_) std::make_shared<Link>(*this, std::move(client))->start();
    accept();
  });
}

}  // namespace sluice::testing
