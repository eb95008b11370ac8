// `requests:` of a policy: how an HTTP request becomes descriptors. Envoy's action names, and some more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "identity/api_keys.h"
#include "identity/client_address.h"
#include "identity/ip_address.h"
#include "identity/jwt_verifier.h"
#include "request/route.h"
#include "sluice/limit.h"

namespace sluice::request {

/// What a header or parameter must be like.
struct Match {
  enum class Kind : std::uint8_t { present, exact, prefix, suffix, contains, range };
  Kind kind = Kind::present;
  std::string name;  ///< of the header (lower case) or parameter
  std::string text;
  std::int64_t begin = 0;  ///< range: from this whole number
  std::int64_t end = 0;    ///< ″ to below this one
  bool ignore_case = false;
  bool invert = false;
  bool missing_is_empty = false;
};

/// Where an API key is.
enum class Place : std::uint8_t { header, parameter, cookie };

/// What becomes of a request whose identity is absent or cannot be verified.
enum class OnMissing : std::uint8_t {
  deny,  ///< refused: 401
  skip,  ///< this descriptor is dropped, as where any other action finds nothing
  other  ///< counted by something else in its place
};

/// Tokens that a request takes: a number, or what a header says.
struct Cost {
  std::uint64_t constant = 1;  ///< also where the header is absent, or has no whole number from 1
  std::string header;          ///< in lower case; empty: the constant
};

/// One entry of a descriptor.
struct Action {
  enum class Kind : std::uint8_t {
    generic_key,
    remote_address,
    masked_remote_address,
    request_headers,
    header_value_match,
    query_parameters,
    query_parameter_value_match,
    jwt_claim,
    api_key,
    cookie,
    method,
    path,
    route
  };
  Kind kind = Kind::generic_key;
  std::string key;              ///< of the entry
  std::string value;            ///< of the entry, where it is fixed
  std::string source;           ///< name of the header (lower case), parameter or cookie
  Place place = Place::header;  ///< of an API key
  unsigned v4_bits = 32;        ///< of an address
  unsigned v6_bits = 128;
  bool skip_if_absent = false;  ///< the entry alone is left out, not the descriptor
  bool expect_match = true;
  std::vector<Match> matches;  ///< all must hold
  std::size_t claim = 0;       ///< index in the token rules' claims
  OnMissing on_missing = OnMissing::skip;
  std::vector<Action> instead;  ///< other: one action
  std::vector<RoutePattern> routes;
};

/// How one descriptor is made.
struct DescriptorRule {
  std::vector<Action> actions;
  std::optional<Cost> cost;  ///< none: that of the request
};

/// One `requests:`. Immutable; shared by threads.
struct Rules {
  std::string domain;
  std::vector<identity::Network> trusted_proxies;
  bool trusts_unix = false;     ///< who is connected by a Unix socket is a trusted proxy, too
  bool counts_address = false;  ///< some action asks for the client's address
  identity::AddressSyntax address_syntax = identity::AddressSyntax::list;
  std::string address_header = "x-forwarded-for";
  std::shared_ptr<const identity::JwtSource> jwt;  ///< null: no claims are asked for
  std::string jwt_header = "authorization";        ///< empty: only the cookie
  std::string jwt_cookie;                          ///< empty: only the header
  std::shared_ptr<identity::ApiKeyFile> api_keys;  ///< null: none are asked for
  Cost cost;
  std::vector<DescriptorRule> descriptors;
  unsigned allow_status = 200;          ///< 200 or 204, of forward-auth answers
  std::optional<unsigned> deny_status;  ///< 429 or 403, ″; none: the front's
};

}  // namespace sluice::request
