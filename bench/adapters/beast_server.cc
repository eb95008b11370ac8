#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "adapters/server.h"
#include "sluice/adapter/beast.h"

namespace sluice::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Tcp::socket socket, HttpLimits* limits, const HttpAnswer* fields)
      : stream_(std::move(socket)),
        peer_(stream_.socket().remote_endpoint().address().to_string()),
        limits_(limits),
        fields_(fields) {
    stream_.socket().set_option(Tcp::no_delay(true));
  }

  void read() {
    request_ = {};
    http::async_read(stream_, buffer_, request_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (!error) self->limit();
    });
  }

 private:
  void limit() {
    if (limits_ == nullptr) {
      respond(fields_);
      return;
    }
    async_limit(*limits_, stream_, request_, peer_, [self = shared_from_this()](const HttpAnswer& answer) {
      if (answer.allowed) {
        self->respond(&answer);
      } else {
        self->response_ = denied_response(answer, self->request_);
        self->write();
      }
    });
  }
  void respond(const HttpAnswer* answer) {
    response_ = http::response<http::string_body>(http::status::ok, request_.version());
    if (answer != nullptr) put_answer(*answer, response_);
    response_.set(http::field::content_type, "text/plain");
    response_.keep_alive(request_.keep_alive());
    response_.body() = "done";
    response_.prepare_payload();
    write();
  }
  void write() {
    http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (!error) self->read();
    });
  }

  beast::tcp_stream stream_;
  const std::string peer_;
  HttpLimits* const limits_;
  const HttpAnswer* const fields_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
};

void accept(Tcp::acceptor& acceptor, HttpLimits* limits, const HttpAnswer* fields) {
  acceptor.async_accept([&acceptor, limits, fields](beast::error_code error, Tcp::socket socket) {
    if (!error) std::make_shared<Session>(std::move(socket), limits, fields)->read();
    accept(acceptor, limits, fields);
  });
}

}  // namespace

void serve_beast(int port, HttpLimits* limits, const HttpAnswer* fields) {
  asio::io_context io{1};
  Tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), static_cast<unsigned short>(port)});
  accept(acceptor, limits, fields);
  io.run();
  std::exit(1);
}

}  // namespace sluice::bench
