// What a proxy asks about: the request of its client, told by fields (forward-auth) or as it was (Envoy's ext_authz).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "front/http/kept_head.h"
#include "sluice/http_request.h"

namespace sluice::http {

/// The two ways to ask: GET /v1/authorize with the client's request in X-Forwarded-* or X-Original-*; or the client's
/// own request, with /v1/ext_authz before its path.
enum class AuthForm : std::uint8_t { none, forwarded, ext_authz };

/// Which one a path asks for.
[[nodiscard]] AuthForm auth_form(std::string_view path);

/// What the proxy's configuration says in the query of /v1/authorize, where no client can put a word in.
struct AuthQuery {
  std::string domain;                    ///< whose `requests:`; empty: the only one
  std::optional<unsigned> allow_status;  ///< 200 or 204
  std::optional<unsigned> deny_status;   ///< 429 or 403
  /// Which fields tell the client's request. By default X-Forwarded-Method and -Uri or, without these, X-Original-*.
  enum class From : std::uint8_t { any, x_forwarded, x_original } from = From::any;
};

/// Reads it, or says what is wrong with it.
[[nodiscard]] std::optional<AuthQuery> read_auth_query(std::string_view target, std::string& problem);

/// The first field that is absent or empty of those by which `from` says that the request is told; empty: none, or no
/// word about it. What is not told is not counted, so it must not pass in silence.
[[nodiscard]] std::string_view absent_field(KeptHead& head, AuthQuery::From from);

/// The client's request as the proxy tells it. Views into `head`; `peer` is the proxy's address.
[[nodiscard]] HttpRequest client_request(KeptHead& head, AuthForm form, AuthQuery::From from, std::string_view peer);

}  // namespace sluice::http
