// What tells who sends a request. The first byte picks what is read: an address, a field of proxies, the PROXY
// protocol, a token, a JWK Set, PEM or API keys. Nothing that a stranger has written makes an address of a stranger's
// choice or a good token.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "identity/api_keys.h"
#include "identity/client_address.h"
#include "identity/jwt.h"
#include "identity/proxy_protocol.h"

namespace {

namespace identity = sluice::identity;
using identity::AddressSyntax;
using identity::IpAddress;

void require(bool holds) {
  if (!holds) std::abort();
}

std::string text_of(const IpAddress& address) {
  std::string text;
  address.append_to(text);
  return text;
}

void address(std::string_view text) {
  const auto parsed = IpAddress::parse_node(text);
  if (!parsed) return;
  // One form, which reads back as the same.
  require(IpAddress::parse(text_of(*parsed)) == parsed);
  require(parsed->masked(parsed->bits()) == *parsed);
  require(parsed->masked(8).masked(8) == parsed->masked(8));
}

void forwarded(std::string_view text, AddressSyntax syntax) {
  static const std::vector<identity::Network> kTrusted{*identity::Network::parse("10.0.0.0/8")};
  constexpr std::array<std::uint8_t, 4> proxy_bytes{10, 0, 0, 1};
  constexpr std::array<std::uint8_t, 4> stranger_bytes{203, 0, 113, 5};
  const IpAddress proxy = IpAddress::from_v4(proxy_bytes);
  const IpAddress stranger = IpAddress::from_v4(stranger_bytes);
  const std::array<std::string_view, 1> lines{text};
  require(identity::client_address(stranger, lines, syntax, kTrusted) == stranger);
  (void)identity::client_address(proxy, lines, syntax, kTrusted);
  // What a proxy writes behind it holds, whatever it is.
  const std::string_view own = syntax == AddressSyntax::forwarded ? ", for=203.0.113.5" : ", 203.0.113.5";
  const std::string more = std::string(text) + std::string(own);
  const std::array<std::string_view, 1> longer{more};
  require(identity::client_address(proxy, longer, syntax, kTrusted) == stranger);
  const std::array<std::string_view, 2> two{text, own.substr(2)};
  require(identity::client_address(proxy, two, syntax, kTrusted) == stranger);
}

void proxy_protocol(std::string_view bytes) {
  using State = identity::ProxyHeader::State;
  const identity::ProxyHeader header = identity::read_proxy_header(bytes);
  if (header.state != State::complete) return;
  require(header.size <= bytes.size() && header.size <= identity::kMaxProxyHeader);
  for (std::size_t cut = 0; cut < header.size; ++cut) {
    require(identity::read_proxy_header(bytes.substr(0, cut)).state == State::incomplete);
  }
  require(identity::read_proxy_header(bytes.substr(0, header.size)).client == header.client);
}

void token(std::string_view text) {
  static const std::shared_ptr<const identity::KeySet> kKeys =
      *identity::KeySet::from_secret("nobody knows this secret");
  static const identity::JwtRules kRules = [] {
    identity::JwtRules all;
    for (const std::string_view name : identity::algorithm_names())
      all.algorithms.push_back(*identity::find_algorithm(name));
    all.claims = {{"sub"}, {"a", "b"}};
    return all;
  }();
  const std::array<const identity::KeySet*, 1> sets{kKeys.get()};
  require(identity::verify_jwt(text, kRules, sets, 0).fault != identity::JwtFault::none);
}

void keys(std::string_view text) {
  if (const auto set = identity::KeySet::from_jwks(text)) require(!(*set)->keys().empty());
  if (const auto set = identity::KeySet::from_pem(text)) require(!(*set)->keys().empty());
  const auto table = identity::ApiKeys::parse(text);
  if (table) require((*table)->owner_of(std::string(300, 'x')).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 6) {
    case 0:
      address(text);
      break;
    case 1:
      forwarded(text, AddressSyntax::list);
      break;
    case 2:
      forwarded(text, AddressSyntax::forwarded);
      break;
    case 3:
      proxy_protocol(text);
      break;
    case 4:
      token(text);
      break;
    default:
      keys(text);
  }
  return 0;
}
