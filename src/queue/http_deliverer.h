// Delivers over HTTP/1.1.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "queue/deliverer.h"

namespace sluice::queue {

/// http://host[:port][/base]
struct Upstream {
  std::string host;
  std::string port = "80";
  std::string base;  ///< put before each path; without a slash at its end
};
[[nodiscard]] Result<Upstream> parse_upstream(std::string_view url);

/// Keeps connections open and uses each for one request at a time; a request that finds a connection closed by the
/// server before a byte of the answer came goes over a new one. 2xx: delivered; 408, 425, 429 and 5xx, or no answer
/// within `timeout`: tried again; any other answer: refused for ever. Adds Idempotency-Key (the ticket), Sluice-Attempt
/// and, where it holds, Sluice-May-Be-Duplicate.
[[nodiscard]] std::unique_ptr<Deliverer> make_http_deliverer(boost::asio::io_context& io, Upstream upstream,
                                                             std::chrono::nanoseconds timeout);

}  // namespace sluice::queue
