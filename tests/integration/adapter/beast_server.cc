#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <optional>
#include <thread>

#include "sluice/adapter/beast.h"
#include "tests/integration/adapter/http_servers.h"

namespace sluice::testing {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;

class BeastServer final : public LimitedServer {
 public:
  BeastServer(ArticleShop& shop, KeysBy keys) : limits_(shop.limits()), keys_(keys) {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~BeastServer() override {
    io_.stop();
    thread_.join();
  }
  [[nodiscard]] std::string address() const override {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }

 private:
  class Session : public std::enable_shared_from_this<Session> {
   public:
    Session(BeastServer& server, Tcp::socket socket)
        : server_(server),
          stream_(std::move(socket)),
          peer_(stream_.socket().remote_endpoint().address().to_string()) {}

    void read() {
      request_ = {};
      http::async_read(stream_, buffer_, request_, [self = shared_from_this()](beast::error_code error, std::size_t) {
        if (!error) self->limit();
      });
    }

   private:
    void limit() {
      auto then = [self = shared_from_this()](const HttpAnswer& answer) { self->answer(answer); };
      if (server_.keys_ == KeysBy::mapping) {
        async_limit(server_.limits_, stream_, request_, peer_, then);
      } else {
        const auto user = request_["X-User"];
        async_limit(server_.limits_, stream_, request_, ArticleShop::by_user({user.data(), user.size()}), then);
      }
    }
    void answer(const HttpAnswer& answer) {
      if (answer.allowed) {
        ++server_.handled_;
        response_ = http::response<http::string_body>(http::status::ok, request_.version());
        put_answer(answer, response_);
        response_.keep_alive(request_.keep_alive());
        response_.body() = "done";
        response_.prepare_payload();
      } else {
        response_ = denied_response(answer, request_);
      }
      http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code error, std::size_t) {
        if (!error && self->response_.keep_alive()) self->read();
      });
    }

    BeastServer& server_;
    beast::tcp_stream stream_;
    const std::string peer_;
    beast::flat_buffer buffer_;
    http::request<http::string_body> request_;
    http::response<http::string_body> response_;
  };

  void accept() {
    acceptor_.async_accept([this](beast::error_code error, Tcp::socket socket) {
      if (error) return;
      std::make_shared<Session>(*this, std::move(socket))->read();
      accept();
    });
  }

  HttpLimits& limits_;
  const KeysBy keys_;
  asio::io_context io_{1};
  Tcp::acceptor acceptor_{io_, Tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  std::thread thread_;
};

}  // namespace

std::unique_ptr<LimitedServer> start_beast(ArticleShop& shop, KeysBy keys) {
  return std::make_unique<BeastServer>(shop, keys);
}

}  // namespace sluice::testing
