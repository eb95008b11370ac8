#include "store/redis/url.h"

#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

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

// Cuts "user:password@" off the front of `rest`; a password may stand elsewhere.
bool take_credentials(std::string_view& rest, Target& target) {
  const std::size_t at = rest.rfind('@');
  if (at == std::string_view::npos) return true;
  const std::string_view credentials = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  const std::size_t colon = credentials.find(':');
  const auto user = decode_percent(credentials.substr(0, colon));
  const auto password = decode_percent(colon == std::string_view::npos ? "" : credentials.substr(colon + 1));
  if (!user || !password || (user->empty() && password->empty())) return false;
  target.user = *user;
  target.password = *password;
  return true;
}

Error bad_credentials() {
  return Error{"Redis URL: what stands before '@' must be user:password, :password or user, percent-encoded"};
}

Result<Target> parse_unix(std::string_view rest) {
  Target target;
  const std::size_t question = rest.find('?');
  std::string_view query = question == std::string_view::npos ? std::string_view() : rest.substr(question + 1);
  rest = rest.substr(0, question);
  if (!take_credentials(rest, target)) return bad_credentials();
  if (!rest.starts_with('/')) return Error{"Redis URL: unix:// must be followed by the socket's absolute path"};
  constexpr std::size_t most = sizeof(sockaddr_un::sun_path) - 1;
  if (rest.size() > most) {
    return Error{"Redis URL: the socket's path has " + std::to_string(rest.size()) + " bytes, at most " +
                 std::to_string(most) + " are possible"};
  }
  target.nodes.push_back({.host = {}, .path = std::string(rest)});
  if (question != std::string_view::npos) {
    if (!query.starts_with("db=")) return Error{"Redis URL: after '?' only db=N is known"};
    const auto database = whole_number<int>(query.substr(3), 0, INT32_MAX);
    if (!database) return Error{"Redis URL: what follows ?db= must be a database number from 0"};
    target.database = *database;
  }
  return target;
}

// What a name or an address may consist of; in brackets an IPv6 address, perhaps with a zone. Other alphabets are left
// to who looks the name up.
bool is_host(std::string_view host, bool is_bracketed) {
  return std::ranges::all_of(host,
                             [&](char c) {
                               const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                                                     (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_' ||
                                                     static_cast<unsigned char>(c) >= 0x80;
                               return is_plain || (is_bracketed && (c == ':' || c == '%'));
                             }) &&
         (!is_bracketed || host.find(':') != std::string_view::npos);
}

Result<Address> parse_address(std::string_view text, std::uint16_t usual_port) {
  Address address{.host = {}, .port = usual_port};
  std::string_view port;
  const bool is_bracketed = text.starts_with('[');
  if (is_bracketed) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return Error{"Redis URL: an address that begins with '[' must end with ']'"};
    address.host = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    if (!text.empty() && text.front() != ':') return Error{"Redis URL: after ']' only :port may follow"};
    port = text.empty() ? text : text.substr(1);
    if (!text.empty() && port.empty()) return Error{"Redis URL: the port must be 1 … 65535"};
  } else {
    const std::size_t colon = text.find(':');
    address.host = text.substr(0, colon);
    if (colon != std::string_view::npos) {
      port = text.substr(colon + 1);
      if (port.empty()) return Error{"Redis URL: the port must be 1 … 65535"};
      if (port.find(':') != std::string_view::npos) {
        return Error{"Redis URL: an IPv6 address must stand in brackets, as in redis://[::1]:6379"};
      }
    }
  }
  if (address.host.empty()) return Error{"Redis URL: the host is missing, as in redis://127.0.0.1:6379"};
  if (!is_host(address.host, is_bracketed)) {
    return Error{is_bracketed ? "Redis URL: in brackets must stand an IPv6 address, as in redis://[::1]:6379"
                              : "Redis URL: the host has a character that no host has, such as a space, '#' or '%'"};
  }
  if (!port.empty()) {
    const auto number = whole_number<std::uint16_t>(port, 1, UINT16_MAX);
    if (!number) return Error{"Redis URL: the port must be 1 … 65535"};
    address.port = *number;
  }
  return address;
}

std::optional<Error> take_database(std::string_view text, Target& target) {
  if (text.empty()) return std::nullopt;
  const auto database = whole_number<int>(text, 0, INT32_MAX);
  if (!database) return Error{"Redis URL: what follows the last '/' must be a database number from 0"};
  target.database = *database;
  return std::nullopt;
}

std::optional<Error> name_master(std::string_view name, Target& target) {
  if (target.master.empty()) target.master = name;
  if (target.master == name) return std::nullopt;
  return Error{"Redis URL: the master is named twice, and not alike (store.redis.master names it, too); leave one out"};
}

// Cuts off what follows the addresses: "/master/database", "/database#master" or "/database"; of a master that is named
// elsewhere also "/master". A password may hold '/', '?' and '#', too.
std::optional<Error> take_path(std::string_view& rest, Target& target) {
  const std::size_t at = rest.rfind('@');
  const std::size_t from = at == std::string_view::npos ? 0 : at;
  if (rest.find('?', from) != std::string_view::npos) {
    return Error{"Redis URL: nothing is known that follows a '?'; a database follows the address: redis://host:6379/2"};
  }
  const bool has_sentinels = target.topology == Topology::sentinel;
  if (const std::size_t hash = rest.find('#', from); hash != std::string_view::npos && has_sentinels) {
    if (auto error = name_master(rest.substr(hash + 1), target)) return error;
    rest = rest.substr(0, hash);
  }
  const std::size_t slash = rest.find('/', from);
  if (slash == std::string_view::npos) return std::nullopt;
  std::string_view path = rest.substr(slash + 1);
  rest = rest.substr(0, slash);
  if (has_sentinels) {
    const std::string_view first = path.substr(0, path.find('/'));
    const bool is_number = whole_number<int>(first, 0, INT32_MAX).has_value();
    if (target.master.empty() || (!first.empty() && !is_number)) {
      if (auto error = name_master(first, target)) return error;
      path.remove_prefix(std::min(path.size(), first.size() + 1));
    }
  }
  return take_database(path, target);
}

Result<Target> parse_tcp(std::string_view rest, Target target) {
  if (rest.starts_with('/')) {
    return Error{"Redis URL: the host is missing, as in redis://127.0.0.1:6379 (one server's socket: unix:///path)"};
  }
  if (auto error = take_path(rest, target)) return *std::move(error);
  if (!take_credentials(rest, target)) return bad_credentials();
  if (rest.size() > 1 && rest.ends_with(',')) {
    return Error{"Redis URL: after its last ',' an address is missing; leave that ',' out"};
  }
  const std::uint16_t usual_port = target.topology == Topology::sentinel ? 26379 : 6379;
  for (std::size_t begin = 0; begin <= rest.size();) {
    const std::size_t comma = std::min(rest.find(',', begin), rest.size());
    auto address = parse_address(rest.substr(begin, comma - begin), usual_port);
    if (!address) return address.error();
    target.nodes.push_back(*std::move(address));
    begin = comma + 1;
  }
  if (target.topology == Topology::standalone && target.nodes.size() > 1) target.topology = Topology::cluster;
  if (target.topology == Topology::cluster && target.database != 0) {
    return Error{"Redis URL: a cluster has no database but 0"};
  }
  if (target.topology == Topology::sentinel && target.master.empty()) {
    return Error{"Redis URL: the master's name is missing, as in redis-sentinel://host1,host2/mymaster"};
  }
  const bool is_word = std::ranges::none_of(target.master, [](char c) { return c <= ' ' || c == '/' || c == 0x7f; });
  if (!is_word) return Error{"Redis URL: the master's name must not hold spaces or '/'"};
  return target;
}

struct Scheme {
  std::string_view name;
  Topology topology;
  bool tls;
};

constexpr Scheme kSchemes[] = {
    {.name = "redis://", .topology = Topology::standalone, .tls = false},
    {.name = "rediss://", .topology = Topology::standalone, .tls = true},
    {.name = "redis-sentinel://", .topology = Topology::sentinel, .tls = false},
    {.name = "redis+sentinel://", .topology = Topology::sentinel, .tls = false},
    {.name = "rediss-sentinel://", .topology = Topology::sentinel, .tls = true},
    {.name = "rediss+sentinel://", .topology = Topology::sentinel, .tls = true},
    {.name = "redis+cluster://", .topology = Topology::cluster, .tls = false},
    {.name = "redis-cluster://", .topology = Topology::cluster, .tls = false},
    {.name = "rediss+cluster://", .topology = Topology::cluster, .tls = true},
    {.name = "rediss-cluster://", .topology = Topology::cluster, .tls = true},
};

}  // namespace

std::string Address::to_text() const {
  if (host.empty()) return path;
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string Target::to_text() const {
  std::string text;
  if (topology == Topology::sentinel) text = "master " + master + " of ";
  if (topology == Topology::cluster) text = "cluster ";
  for (const Address& node : nodes) {
    if (&node != nodes.data()) text += ',';
    text += node.to_text();
  }
  return text;
}

Result<Target> parse_url(std::string_view url, std::string_view master) {
  constexpr std::string_view blanks = " \t\r\n";
  if (!url.empty() &&
      (blanks.find(url.front()) != std::string_view::npos || blanks.find(url.back()) != std::string_view::npos)) {
    return Error{"Redis URL: it begins or ends with a blank or a line's end; leave that out"};
  }
  if (url.starts_with("unix://")) {
    if (!master.empty()) return Error{"Redis URL: with a master's name the addresses of sentinels are expected"};
    return parse_unix(url.substr(7));
  }
  for (const Scheme& scheme : kSchemes) {
    if (!url.starts_with(scheme.name)) continue;
    Target target;
    target.topology = scheme.topology;
    target.master = master;
    target.tls = scheme.tls;
    if (!master.empty()) {
      if (scheme.topology == Topology::cluster) return Error{"Redis URL: a cluster has no master's name"};
      target.topology = Topology::sentinel;
    }
    return parse_tcp(url.substr(scheme.name.size()), std::move(target));
  }
  return Error{
      "Redis URL: must begin with redis://, rediss://, redis-sentinel://, redis+cluster:// or unix:// (rediss… for "
      "TLS)"};
}

}  // namespace sluice::store::redis
