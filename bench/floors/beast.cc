// Floor: HTTP/1.1 keep-alive on Boost.Beast. Reads a request with its body and answers fixed JSON, one thread.
// usage: beast PORT
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

class Session : public std::enable_shared_from_this<Session> {
 public:
  explicit Session(tcp::socket&& socket) : stream_(std::move(socket)) {
    stream_.socket().set_option(tcp::no_delay(true));
  }

  void read() {
    request_ = {};
    http::async_read(stream_, buffer_, request_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (!error) {
        self->write();
        return;
      }
      beast::error_code ignored;
      ignored = self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    });
  }

 private:
  void write() {
    response_ = {};
    response_.version(request_.version());
    response_.result(http::status::ok);
    response_.keep_alive(request_.keep_alive());
    response_.set(http::field::content_type, "application/json");
    response_.body() = R"({"allowed":true,"limit":100,"remaining":99,"reset_after":1,"retry_after":0})";
    response_.prepare_payload();
    http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (!error) self->read();
    });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
};

class Acceptor {
 public:
  Acceptor(asio::io_context& io, unsigned short port) : acceptor_(io, {asio::ip::address_v4::loopback(), port}) {}

  void accept() {
    acceptor_.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (!error) std::make_shared<Session>(std::move(socket))->read();
      accept();
    });
  }

 private:
  tcp::acceptor acceptor_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: beast PORT\n");
    return 1;
  }
  try {
    asio::io_context io{1};
    Acceptor acceptor(io, static_cast<unsigned short>(std::atoi(argv[1])));
    acceptor.accept();
    io.run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "beast: %s\n", error.what());
    return 1;
  }
}
