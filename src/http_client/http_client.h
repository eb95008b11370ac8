// Sends requests over HTTP/1.1, in the clear or over TLS.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http_client/upstream.h"

namespace sluice::http_client {

using Request = boost::beast::http::request<boost::beast::http::string_body>;
using Response = boost::beast::http::response<boost::beast::http::string_body>;

/// How a request ended.
struct Answer {
  std::string problem;  ///< why there is no response; empty: there is
  Response response;
};

/// Keeps connections open and uses each for one request at a time. A request of which the server may have got anything
/// is never sent again: whoever closes a connection instead of answering may have done the work. Interim answers (1xx)
/// are passed over; a body beyond 1 MiB is cut and its connection closed. Not thread-safe: used by the thread that runs
/// `io`, which must not run on once this is gone.
class HttpClient {
 public:
  using Done = std::function<void(Answer answer)>;

  /// `trust`: may be null where the upstream is not over TLS.
  HttpClient(boost::asio::io_context& io, Upstream upstream, const TrustPtr& trust, std::chrono::nanoseconds timeout);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Its target is put behind the base of the upstream, and Host and Content-Length are set. Calls `done` once, later
  /// or before it returns, within the time-out.
  void send(Request request, Done done);

 private:
  class Channel;
  struct Exchange;
  using ErrorCode = boost::system::error_code;

  void connect(const std::shared_ptr<Exchange>& exchange);
  void write(const std::shared_ptr<Exchange>& exchange);
  void read(const std::shared_ptr<Exchange>& exchange);
  void fail(const std::shared_ptr<Exchange>& exchange, const ErrorCode& error);
  void finish(const std::shared_ptr<Exchange>& exchange);

  boost::asio::io_context& io_;
  const Upstream upstream_;
  const TrustPtr trust_;  ///< null: in the clear
  const std::chrono::nanoseconds timeout_;
  boost::asio::ip::tcp::resolver resolver_;
  std::vector<std::unique_ptr<Channel>> idle_;
};

}  // namespace sluice::http_client
