#include "queue/http_deliverer.h"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::queue {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

constexpr std::size_t kMostAnswer = std::size_t{1} << 20U;  ///< bytes of an answer's body, which is not kept
constexpr std::size_t kMostIdle = 64;

class HttpDeliverer;

/// One delivery on one connection.
struct Exchange : std::enable_shared_from_this<Exchange> {
  Exchange(asio::io_context& io, HttpDeliverer& its_owner) : owner(its_owner), socket(io), timer(io) {}

  HttpDeliverer& owner;
  Tcp::socket socket;
  asio::steady_timer timer;
  http::request<http::string_body> request;
  std::optional<http::response_parser<http::string_body>> parser;
  boost::beast::flat_buffer buffer;
  Deliverer::Done done;
  bool is_reused = false;
  bool is_late = false;
};

class HttpDeliverer final : public Deliverer {
 public:
  HttpDeliverer(asio::io_context& io, Upstream upstream, std::chrono::nanoseconds timeout)
      : io_(io), upstream_(std::move(upstream)), timeout_(timeout), resolver_(io) {}

  void start(const Attempt& attempt, Done done) override {
    const auto exchange = std::make_shared<Exchange>(io_, *this);
    exchange->done = std::move(done);
    fill(exchange->request, attempt);
    exchange->timer.expires_after(timeout_);
    exchange->timer.async_wait([exchange](const error_code& error) {
      if (error) return;
      exchange->is_late = true;
      error_code ignored;
      (void)exchange->socket.close(ignored);
    });
    if (idle_.empty()) {
      connect(exchange);
      return;
    }
    exchange->socket = std::move(idle_.back());
    idle_.pop_back();
    exchange->is_reused = true;
    send(exchange);
  }

 private:
  void fill(http::request<http::string_body>& request, const Attempt& attempt) const {
    const Message& message = *attempt.message;
    request.version(11);
    request.method_string(message.method);
    request.target(upstream_.base + message.path);
    for (const auto& [name, value] : message.headers) request.insert(name, value);
    request.set(http::field::host, upstream_.port == "80" ? upstream_.host : upstream_.host + ":" + upstream_.port);
    request.set("Idempotency-Key", message.ticket);
    request.set("Sluice-Attempt", std::to_string(attempt.number));
    if (attempt.may_be_duplicate) request.set("Sluice-May-Be-Duplicate", "true");
    if (!message.body_reference.empty()) request.set("Sluice-Body-Reference", message.body_reference);
    request.body() = message.body;
    request.prepare_payload();
  }

  void connect(const std::shared_ptr<Exchange>& exchange) {
    exchange->is_reused = false;
    resolver_.async_resolve(upstream_.host, upstream_.port,
                            [this, exchange](const error_code& error, const Tcp::resolver::results_type& places) {
                              if (error) {
                                fail(exchange, error);
                                return;
                              }
                              asio::async_connect(exchange->socket, places,
                                                  [this, exchange](const error_code& failed, const Tcp::endpoint&) {
                                                    if (failed || exchange->is_late) {
                                                      fail(exchange, failed);
                                                      return;
                                                    }
                                                    error_code ignored;
                                                    (void)exchange->socket.set_option(Tcp::no_delay(true), ignored);
                                                    send(exchange);
                                                  });
                            });
  }

  void send(const std::shared_ptr<Exchange>& exchange) {
    http::async_write(exchange->socket, exchange->request, [this, exchange](const error_code& error, std::size_t) {
      if (error) {
        fail(exchange, error);
      } else {
        receive(exchange);
      }
    });
  }

  void receive(const std::shared_ptr<Exchange>& exchange) {
    exchange->buffer.clear();
    exchange->parser.emplace();
    exchange->parser->body_limit(kMostAnswer);
    if (exchange->request.method() == http::verb::head) exchange->parser->skip(true);
    http::async_read(exchange->socket, exchange->buffer, *exchange->parser,
                     [this, exchange](const error_code& error, std::size_t size) {
                       if (!error) {
                         finish(exchange);
                       } else if (size == 0 && exchange->is_reused && !exchange->is_late) {
                         again(exchange);
                       } else {
                         fail(exchange, error);
                       }
                     });
  }

  /// The server had ended an idle connection, perhaps just as the request came.
  void again(const std::shared_ptr<Exchange>& exchange) {
    exchange->socket = Tcp::socket(io_);
    connect(exchange);
  }

  void fail(const std::shared_ptr<Exchange>& exchange, const error_code& error) {
    if (exchange->is_reused && !exchange->is_late && !exchange->parser) {
      again(exchange);
      return;
    }
    exchange->timer.cancel();
    const std::string why = exchange->is_late ? "no answer in time" : error.message();
    std::exchange(exchange->done, nullptr)({.kind = Outcome::Kind::retry, .status = 0, .reason = why});
  }

  void finish(const std::shared_ptr<Exchange>& exchange) {
    exchange->timer.cancel();
    const auto& answer = exchange->parser->get();
    const auto status = static_cast<int>(answer.result_int());
    if (answer.keep_alive() && exchange->buffer.size() == 0 && idle_.size() < kMostIdle) {
      idle_.push_back(std::move(exchange->socket));
    }
    Outcome outcome;
    outcome.status = status;
    if (status < 200 || status > 299) {
      const bool later = status == 408 || status == 425 || status == 429 || status >= 500;
      outcome.kind = later ? Outcome::Kind::retry : Outcome::Kind::refused;
      outcome.reason = "answered " + std::to_string(status);
    }
    std::exchange(exchange->done, nullptr)(std::move(outcome));
  }

  asio::io_context& io_;
  const Upstream upstream_;
  const std::chrono::nanoseconds timeout_;
  Tcp::resolver resolver_;
  std::vector<Tcp::socket> idle_;
};

}  // namespace

Result<Upstream> parse_upstream(std::string_view url) {
  constexpr std::string_view scheme = "http://";
  const Error error{"expected a URL such as http://127.0.0.1:9000, found '" + std::string(url) + "'"};
  if (!url.starts_with(scheme)) return error;
  url.remove_prefix(scheme.size());
  Upstream upstream;
  const std::size_t slash = std::min(url.find('/'), url.size());
  std::string_view place = url.substr(0, slash);
  upstream.base = url.substr(slash);
  while (upstream.base.ends_with('/')) upstream.base.pop_back();
  if (place.starts_with('[')) {
    const std::size_t end = place.find(']');
    if (end == std::string_view::npos) return error;
    upstream.host = place.substr(1, end - 1);
    place.remove_prefix(end + 1);
  } else {
    const std::size_t colon = std::min(place.find(':'), place.size());
    upstream.host = place.substr(0, colon);
    place.remove_prefix(colon);
  }
  if (place.starts_with(':')) upstream.port = place.substr(1);
  const bool is_port = !upstream.port.empty() && upstream.port.size() <= 5 &&
                       upstream.port.find_first_not_of("0123456789") == std::string::npos;
  const bool is_place = place.empty() || place.starts_with(':');
  if (upstream.host.empty() || !is_port || !is_place || url.find_first_of(" \r\n@?#") != std::string_view::npos) {
    return error;
  }
  return upstream;
}

std::unique_ptr<Deliverer> make_http_deliverer(asio::io_context& io, Upstream upstream,
                                               std::chrono::nanoseconds timeout) {
  return std::make_unique<HttpDeliverer>(io, std::move(upstream), timeout);
}

}  // namespace sluice::queue
