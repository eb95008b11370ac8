// Finding things in a request by name: header fields, cookies, parameters of the query.
#pragma once

#include <cstddef>
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

/// Appends a host in one spelling: in lower case, without a dot at its end, without the port that http or https has
/// anyway.
void append_normal_host(std::string_view host, std::string& out);

/// The value of the first cookie of this name, without quotes around it; a view into the request.
[[nodiscard]] std::optional<std::string_view> find_cookie(const HttpRequest& request, std::string_view name);

/// Replaces `value` by the first parameter of this name, decoded. False: there is none.
[[nodiscard]] bool find_parameter(std::string_view target, std::string_view name, std::string& value);

}  // namespace sluice::request
