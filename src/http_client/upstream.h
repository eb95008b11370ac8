// An HTTP server that requests are sent to, as its URL names it, and whom to trust about it.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice::http_client {

/// http[s]://host[:port][/base]
struct Upstream {
  std::string host;
  std::string port = "80";
  std::string base;          ///< put before each path; without a slash at its end
  bool is_over_tls = false;  ///< https
};
[[nodiscard]] Result<Upstream> parse_upstream(std::string_view url);

using TrustPtr = std::shared_ptr<boost::asio::ssl::context>;
/// Whom to trust behind https://: the authorities of a PEM file; empty: those of the system. The error names the file.
/// The server's certificate must name the host of the URL.
[[nodiscard]] Result<TrustPtr> make_trust(const std::string& ca);

}  // namespace sluice::http_client
