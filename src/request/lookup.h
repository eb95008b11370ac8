// Finding things in a request by name: header fields, cookies, parameters of the query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/http_request.h"

namespace sluice::request {

/// `name` in lower case. The first value and how often the field is there; also :path, :method, :authority and :scheme.
struct FoundHeader {
  std::optional<std::string_view> first;
  std::size_t count = 0;
};
[[nodiscard]] FoundHeader find_header(const HttpRequest& request, std::string_view name);

enum class HostForm : std::uint8_t {
  good,
  none,      ///< no name in it: empty, ".", ":80"
  malformed  ///< a port that is none, brackets around no IPv6 address, characters that no name has
};
/// Appends a host in one spelling, if it is good: in lower case, without dots at its end, without an empty port or the
/// one that http or https has anyway; other ports without leading zeros, IPv6 addresses as RFC 5952 has them.
[[nodiscard]] HostForm append_normal_host(std::string_view host, std::string& out);

/// The value of the first cookie of this name in all lines, without quotes around it; a view into the request.
struct FoundCookie {
  std::optional<std::string_view> first;
  bool is_ambiguous = false;  ///< there are others with another value
};
[[nodiscard]] FoundCookie find_cookie(const HttpRequest& request, std::string_view name);

/// Replaces `value` by the first parameter of this name, decoded. False: there is none. Sets `is_ambiguous`, if given,
/// when there are others with another value.
[[nodiscard]] bool find_parameter(std::string_view target, std::string_view name, std::string& value,
                                  bool* is_ambiguous = nullptr);

}  // namespace sluice::request
