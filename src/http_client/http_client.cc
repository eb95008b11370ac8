#include "http_client/http_client.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <optional>
#include <utility>

namespace sluice::http_client {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using Tcp = asio::ip::tcp;

constexpr std::size_t kMostAnswer = std::size_t{1} << 20U;  ///< bytes of an answer's body
constexpr std::size_t kMostIdle = 64;

/// Will another follow to the same request? (RFC 9110, 15.2)
bool is_interim(const Response& response) {
  return response.result_int() >= 100 && response.result_int() < 200 &&
         response.result() != http::status::switching_protocols;
}

}  // namespace

/// A connection, in the clear or over TLS.
class HttpClient::Channel {
 public:
  Channel(asio::io_context& io, const TrustPtr& trust, const std::string& host) {
    if (trust == nullptr) {
      plain_.emplace(io);
      return;
    }
    secure_.emplace(io, *trust);
    secure_->set_verify_callback(ssl::host_name_verification(host));
    ErrorCode is_name;
    (void)asio::ip::make_address(host, is_name);
    if (!is_name) return;
    // For a server of several names. As the macro for it does, which casts in an old way.
    std::string name = host;
    ::SSL_ctrl(secure_->native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
  }

  [[nodiscard]] Tcp::socket& socket() { return secure_ ? secure_->next_layer() : *plain_; }
  /// Is it open, with nothing unread? Not where the server has closed it, or has sent what nobody asked for.
  [[nodiscard]] bool is_fresh() {
    char byte = 0;
    const auto found = ::recv(socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return found < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
  /// Once it is connected.
  template <typename Done>
  void greet(Done done) {
    if (secure_) {
      secure_->async_handshake(ssl::stream_base::client, std::move(done));
    } else {
      done(ErrorCode());
    }
  }
  /// Calls use(stream) with what is read and written.
  template <typename Use>
  void with(Use use) {
    if (secure_) {
      use(*secure_);
    } else {
      use(*plain_);
    }
  }

 private:
  std::optional<Tcp::socket> plain_;
  std::optional<ssl::stream<Tcp::socket>> secure_;
};

/// One request on one connection.
struct HttpClient::Exchange {
  explicit Exchange(asio::io_context& io) : timer(io) {}

  std::unique_ptr<Channel> channel;
  asio::steady_timer timer;
  Request request;
  std::optional<http::response_parser<http::string_body>> parser;
  boost::beast::flat_buffer buffer;
  Done done;
  bool is_reused = false;
  bool is_late = false;
};

HttpClient::HttpClient(asio::io_context& io, Upstream upstream, const TrustPtr& trust, std::chrono::nanoseconds timeout)
    : io_(io),
      upstream_(std::move(upstream)),
      trust_(upstream_.is_over_tls ? trust : nullptr),
      timeout_(timeout),
      resolver_(io) {}

HttpClient::~HttpClient() = default;

void HttpClient::send(Request request, Done done) {
  const auto exchange = std::make_shared<Exchange>(io_);
  exchange->done = std::move(done);
  exchange->request = std::move(request);
  exchange->request.target(upstream_.base + std::string(exchange->request.target()));
  const bool is_usual = upstream_.port == (upstream_.is_over_tls ? "443" : "80");
  exchange->request.set(http::field::host, is_usual ? upstream_.host : upstream_.host + ":" + upstream_.port);
  exchange->request.prepare_payload();
  exchange->timer.expires_after(timeout_);
  exchange->timer.async_wait([exchange](const ErrorCode& error) {
    if (error) return;
    exchange->is_late = true;
    ErrorCode ignored;
    if (exchange->channel != nullptr) (void)exchange->channel->socket().close(ignored);
  });
  while (!idle_.empty()) {
    exchange->channel = std::move(idle_.back());
    idle_.pop_back();
    if (!exchange->channel->is_fresh()) continue;
    exchange->is_reused = true;
    write(exchange);
    return;
  }
  connect(exchange);
}

void HttpClient::connect(const std::shared_ptr<Exchange>& exchange) {
  exchange->is_reused = false;
  exchange->channel = std::make_unique<Channel>(io_, trust_, upstream_.host);
  resolver_.async_resolve(upstream_.host, upstream_.port,
                          [this, exchange](const ErrorCode& error, const Tcp::resolver::results_type& places) {
                            if (error) {
                              fail(exchange, error);
                              return;
                            }
                            asio::async_connect(exchange->channel->socket(), places,
                                                [this, exchange](const ErrorCode& failed, const Tcp::endpoint&) {
                                                  if (failed || exchange->is_late) {
                                                    fail(exchange, failed);
                                                    return;
                                                  }
                                                  ErrorCode ignored;
                                                  Channel& channel = *exchange->channel;
                                                  (void)channel.socket().set_option(Tcp::no_delay(true), ignored);
                                                  channel.greet([this, exchange](const ErrorCode& refused) {
                                                    if (refused) {
                                                      fail(exchange, refused);
                                                    } else {
                                                      write(exchange);
                                                    }
                                                  });
                                                });
                          });
}

void HttpClient::write(const std::shared_ptr<Exchange>& exchange) {
  exchange->channel->with([this, &exchange](auto& stream) {
    http::async_write(stream, exchange->request, [this, exchange](const ErrorCode& error, std::size_t size) {
      if (!error) {
        read(exchange);
      } else if (size == 0 && exchange->is_reused && !exchange->is_late) {
        connect(exchange);
      } else {
        fail(exchange, error);
      }
    });
  });
}

void HttpClient::read(const std::shared_ptr<Exchange>& exchange) {
  exchange->parser.emplace();
  exchange->parser->body_limit(kMostAnswer);
  if (exchange->request.method() == http::verb::head) exchange->parser->skip(true);
  exchange->channel->with([this, &exchange](auto& stream) {
    http::async_read(stream, exchange->buffer, *exchange->parser,
                     [this, exchange](const ErrorCode& error, std::size_t) {
                       if (error && (!exchange->parser->is_header_done() || is_interim(exchange->parser->get()))) {
                         fail(exchange, error);
                       } else if (error) {
                         exchange->channel.reset();  // too long or cut: its status is an answer all the same
                         finish(exchange);
                       } else if (is_interim(exchange->parser->get())) {
                         read(exchange);
                       } else {
                         finish(exchange);
                       }
                     });
  });
}

void HttpClient::fail(const std::shared_ptr<Exchange>& exchange, const ErrorCode& error) {
  exchange->timer.cancel();
  const std::string why = exchange->is_late ? "no answer in time" : error.message();
  std::exchange(exchange->done, nullptr)({.problem = why, .response = {}});
}

void HttpClient::finish(const std::shared_ptr<Exchange>& exchange) {
  exchange->timer.cancel();
  Response response = exchange->parser->release();
  const bool is_left_clean = exchange->channel != nullptr && response.keep_alive() && exchange->buffer.size() == 0 &&
                             response.result() != http::status::switching_protocols;
  if (is_left_clean && idle_.size() < kMostIdle) idle_.push_back(std::move(exchange->channel));
  std::exchange(exchange->done, nullptr)({.problem = {}, .response = std::move(response)});
}

}  // namespace sluice::http_client
