#include "store/redis/url.h"

#include <sys/un.h>

#include <charconv>
#include <optional>

namespace sluice::store::redis {

namespace {

std::optional<unsigned> hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<unsigned>(digit - '0');
  if (digit >= 'a' && digit <= 'f') return static_cast<unsigned>(digit - 'a') + 10;
  if (digit >= 'A' && digit <= 'F') return static_cast<unsigned>(digit - 'A') + 10;
  return std::nullopt;
}

std::optional<std::string> decode_percent(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const auto high = hex_digit(text[i + 1]);
    const auto low = hex_digit(text[i + 2]);
    if (!high || !low) return std::nullopt;
    plain += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return plain;
}

template <typename Number>
std::optional<Number> whole_number(std::string_view text, Number least, Number most) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) return std::nullopt;
  return value;
}

// Cuts "user:password@" off the front of `rest`.
bool take_credentials(std::string_view& rest, Endpoint& endpoint) {
  const std::size_t at = rest.rfind('@');
  if (at == std::string_view::npos) return true;
  const std::string_view credentials = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  const std::size_t colon = credentials.find(':');
  if (colon == std::string_view::npos) return false;
  const auto user = decode_percent(credentials.substr(0, colon));
  const auto password = decode_percent(credentials.substr(colon + 1));
  if (!user || !password || password->empty()) return false;
  endpoint.user = *user;
  endpoint.password = *password;
  return true;
}

Result<Endpoint> parse_unix(std::string_view rest) {
  Endpoint endpoint;
  const std::size_t question = rest.find('?');
  std::string_view query = question == std::string_view::npos ? std::string_view() : rest.substr(question + 1);
  rest = rest.substr(0, question);
  if (!take_credentials(rest, endpoint)) {
    return Error{"Redis URL: what stands before '@' must be user:password or :password, percent-encoded"};
  }
  if (!rest.starts_with('/')) return Error{"Redis URL: unix:// must be followed by the socket's absolute path"};
  constexpr std::size_t most = sizeof(sockaddr_un::sun_path) - 1;
  if (rest.size() > most) {
    return Error{"Redis URL: the socket's path has " + std::to_string(rest.size()) + " bytes, at most " +
                 std::to_string(most) + " are possible"};
  }
  endpoint.path = rest;
  if (!query.empty()) {
    if (!query.starts_with("db=")) return Error{"Redis URL: after '?' only db=N is known"};
    const auto database = whole_number<int>(query.substr(3), 0, INT32_MAX);
    if (!database) return Error{"Redis URL: the database must be a number from 0"};
    endpoint.database = *database;
  }
  return endpoint;
}

Result<Endpoint> parse_tcp(std::string_view rest) {
  Endpoint endpoint;
  // The database comes after the last '/', but a password may hold '/' too.
  const std::size_t at = rest.rfind('@');
  const std::size_t slash = rest.find('/', at == std::string_view::npos ? 0 : at);
  if (slash != std::string_view::npos) {
    const std::string_view database_text = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
    if (!database_text.empty()) {
      const auto database = whole_number<int>(database_text, 0, INT32_MAX);
      if (!database) return Error{"Redis URL: what follows the last '/' must be a database number from 0"};
      endpoint.database = *database;
    }
  }
  if (!take_credentials(rest, endpoint)) {
    return Error{"Redis URL: what stands before '@' must be user:password or :password, percent-encoded"};
  }
  std::string_view port;
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return Error{"Redis URL: an address that begins with '[' must end with ']'"};
    endpoint.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (!rest.empty() && rest.front() != ':') return Error{"Redis URL: after ']' only :port may follow"};
    port = rest.empty() ? rest : rest.substr(1);
    if (!rest.empty() && port.empty()) return Error{"Redis URL: the port must be 1 … 65535"};
  } else {
    const std::size_t colon = rest.find(':');
    endpoint.host = rest.substr(0, colon);
    if (colon != std::string_view::npos) {
      port = rest.substr(colon + 1);
      if (port.empty()) return Error{"Redis URL: the port must be 1 … 65535"};
      if (port.find(':') != std::string_view::npos) {
        return Error{"Redis URL: an IPv6 address must stand in brackets, as in redis://[::1]:6379"};
      }
    }
  }
  if (endpoint.host.empty()) return Error{"Redis URL: the host is missing, as in redis://127.0.0.1:6379"};
  if (!port.empty()) {
    const auto number = whole_number<std::uint16_t>(port, 1, UINT16_MAX);
    if (!number) return Error{"Redis URL: the port must be 1 … 65535"};
    endpoint.port = *number;
  }
  return endpoint;
}

}  // namespace

std::string Endpoint::to_text() const {
  if (host.empty()) return path;
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Endpoint> parse_url(std::string_view url) {
  if (url.starts_with("redis://")) return parse_tcp(url.substr(8));
  if (url.starts_with("unix://")) return parse_unix(url.substr(7));
  if (url.starts_with("rediss://")) return Error{"Redis URL: TLS (rediss://) is not supported yet; use redis://"};
  return Error{"Redis URL: must begin with redis:// or unix://"};
}

}  // namespace sluice::store::redis
