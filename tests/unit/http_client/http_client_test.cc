#include "http_client/http_client.h"

#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace sluice::http_client {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server that does what a test writes down, one thing after the other.
class Server {
 public:
  /// One of its connections.
  class Client {
   public:
    explicit Client(Tcp::socket socket) : socket_(std::move(socket)) {}
    /// The body of the next request; "-" when there is none any more.
    std::string read() {
      http::request<http::string_body> request;
      boost::system::error_code error;
      http::read(socket_, buffer_, request, error);
      return error ? "-" : request.body();
    }
    void write(std::string_view bytes) {
      boost::system::error_code gone;
      asio::write(socket_, asio::buffer(bytes.data(), bytes.size()), gone);
    }

   private:
    Tcp::socket socket_;
    boost::beast::flat_buffer buffer_;
  };

  explicit Server(std::function<void(Server&)> script)
      : acceptor_(io_, {asio::ip::address_v4::loopback(), 0}),
        thread_([this, script = std::move(script)] { script(*this); }) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { thread_.join(); }

  Client accept() { return Client(acceptor_.accept()); }
  [[nodiscard]] std::string port() const { return std::to_string(acceptor_.local_endpoint().port()); }

 private:
  asio::io_context io_;
  Tcp::acceptor acceptor_;
  std::thread thread_;
};

class HttpClientTest : public ::testing::Test {
 protected:
  void open(const Server& server) {
    client_.emplace(io_, Upstream{.host = "127.0.0.1", .port = server.port(), .base = {}}, nullptr, 10s);
  }
  /// What comes of a POST with that body: the status and what of the body has come, or "problem".
  std::string post(std::string body) {
    Request request;
    request.method(http::verb::post);
    request.target("/");
    request.body() = std::move(body);
    std::string told;
    client_->send(std::move(request), [&](const Answer& answer) {
      told = answer.problem.empty() ? std::to_string(answer.response.result_int()) + " " + answer.response.body()
                                    : "problem";
    });
    io_.restart();
    io_.run();
    return told;
  }

  asio::io_context io_;
  std::optional<HttpClient> client_;
};

TEST_F(HttpClientTest, InterimAnswersArePassedOver) {
  std::string second;
  Server server([&](Server& self) {
    auto client = self.accept();
    (void)client.read();
    client.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    client.write(kOk);
    second = client.read();  // the connection is still good
    client.write(kOk);
  });
  open(server);
  EXPECT_EQ(post("a"), "200 ok");
  EXPECT_EQ(post("b"), "200 ok");
  client_.reset();
}

TEST_F(HttpClientTest, TheStatusOfAnAnswerWithALongOrACutBodyCounts) {
  const std::string body(std::size_t{3} << 20U, 'x');
  for (const std::string& head :
       {"Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body, "Connection: close\r\n\r\n" + body,
        "\r\n" + body, "Content-Length: 100\r\n\r\n" + std::string("cut"),
        "Transfer-Encoding: chunked\r\n\r\n" + std::string("5\r\nab"),
        "Transfer-Encoding: chunked\r\n\r\n" + std::string("no chunk")}) {
    Server server([&](Server& self) {
      {
        auto client = self.accept();
        (void)client.read();
        client.write("HTTP/1.1 201 Created\r\n" + head);
      }
      auto next = self.accept();
      (void)next.read();
      next.write(kOk);
    });
    open(server);
    EXPECT_EQ(post("a").substr(0, 3), "201");
    EXPECT_EQ(post("b"), "200 ok");
    client_.reset();
  }
}

// What follows it is of another protocol.
TEST_F(HttpClientTest, AConnectionThatChangesItsProtocolIsNotUsedAgain) {
  Server server([&](Server& self) {
    auto client = self.accept();
    (void)client.read();
    client.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
    auto next = self.accept();
    (void)next.read();
    next.write(kOk);
  });
  open(server);
  EXPECT_EQ(post("a").substr(0, 3), "101");
  EXPECT_EQ(post("b"), "200 ok");
}

TEST_F(HttpClientTest, ARequestGoesOverANewConnectionWhereTheIdleOneWasClosed) {
  std::string second;
  Server server([&](Server& self) {
    {
      auto client = self.accept();
      (void)client.read();
      client.write(kOk);
    }
    auto next = self.accept();
    second = next.read();
    next.write(kOk);
  });
  open(server);
  EXPECT_EQ(post("a"), "200 ok");
  // Its end is on its way.
  for (std::string answer; second.empty();) {
    answer = post("b");
    EXPECT_TRUE(answer == "200 ok" || answer == "problem");
  }
  EXPECT_EQ(second, "b");
  client_.reset();
}

TEST_F(HttpClientTest, ARequestThatTheServerHasReadIsNotSentAgain) {
  int requests = 0;
  Server server([&](Server& self) {
    {
      auto client = self.accept();
      (void)client.read();
      client.write(kOk);
      requests += client.read() == "b" ? 1 : 0;  // and closes
    }
    auto next = self.accept();
    requests += next.read() == "b" ? 1 : 0;
    next.write(kOk);
  });
  open(server);
  EXPECT_EQ(post("a"), "200 ok");
  EXPECT_EQ(post("b"), "problem");
  EXPECT_EQ(post("c"), "200 ok");
  client_.reset();
  EXPECT_EQ(requests, 1);
}

}  // namespace
}  // namespace sluice::http_client
