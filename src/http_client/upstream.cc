#include "http_client/upstream.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

#include "base/read_file.h"

namespace sluice::http_client {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;
namespace {

/// What stands before the host may be a password.
std::string without_user(std::string_view url) {
  const std::size_t at = url.rfind('@');
  if (at == std::string_view::npos) return std::string(url);
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme < at ? scheme + 3 : 0;
  return std::string(url.substr(0, begin)) + "***" + std::string(url.substr(at));
}

}  // namespace

Result<Upstream> parse_upstream(std::string_view url) {
  constexpr std::string_view plain = "http://";
  constexpr std::string_view secure = "https://";
  const Error error{"expected a URL such as http://127.0.0.1:9000 or https://example.org, found '" + without_user(url) +
                    "'"};
  Upstream upstream;
  upstream.is_over_tls = url.starts_with(secure);
  if (!upstream.is_over_tls && !url.starts_with(plain)) return error;
  url.remove_prefix(upstream.is_over_tls ? secure.size() : plain.size());
  if (upstream.is_over_tls) upstream.port = "443";
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
  std::uint16_t port = 0;
  const char* const end = upstream.port.data() + upstream.port.size();
  const auto [stop, failure] = std::from_chars(upstream.port.data(), end, port);
  const bool is_port = failure == std::errc{} && stop == end && port > 0;
  const bool is_place = place.empty() || place.starts_with(':');
  if (upstream.host.empty() || !is_port || !is_place || url.find_first_of(" \r\n@?#") != std::string_view::npos) {
    return error;
  }
  return upstream;
}

Result<TrustPtr> make_trust(const std::string& ca) {
  auto trust = std::make_shared<ssl::context>(ssl::context::tls_client);
  trust->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  trust->set_verify_mode(ssl::verify_peer);
  error_code error;
  if (ca.empty()) {
    (void)trust->set_default_verify_paths(error);
    if (error) return Error{"the system's certificates cannot be read: " + error.message()};
  } else {
    if (const auto refusal = refusal_of_irregular(ca)) return Error{ca + ": " + refusal->message};
    (void)trust->load_verify_file(ca, error);
    if (error) return Error{ca + ": cannot use it as the trusted authorities' certificates: " + error.message()};
  }
  return trust;
}

}  // namespace sluice::http_client
