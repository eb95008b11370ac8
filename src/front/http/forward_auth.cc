#include "front/http/forward_auth.h"

#include <span>
#include <utility>

#include "request/lookup.h"
#include "request/percent.h"

namespace sluice::http {
namespace {

constexpr std::string_view kForwarded = "/v1/authorize";
constexpr std::string_view kExtAuthz = "/v1/ext_authz";

std::string_view field(const HttpRequest& request, std::string_view name) {
  return request::find_header(request, name).first.value_or(std::string_view{});
}

/// One of two statuses.
std::optional<unsigned> read_status(std::string_view text, unsigned first, unsigned second) {
  if (text == std::to_string(first)) return first;
  if (text == std::to_string(second)) return second;
  return std::nullopt;
}

/// The target without the scheme and the authority that a proxy may have put before it.
std::string_view origin_form(std::string_view target) {
  const std::size_t scheme = target.find("://");
  if (target.starts_with('/') || scheme == std::string_view::npos) return target;
  const std::size_t slash = target.find('/', scheme + 3);
  return slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
}

}  // namespace

AuthForm auth_form(std::string_view path) {
  if (path == kForwarded) return AuthForm::forwarded;
  if (!path.starts_with(kExtAuthz)) return AuthForm::none;
  return path.size() == kExtAuthz.size() || path[kExtAuthz.size()] == '/' ? AuthForm::ext_authz : AuthForm::none;
}

std::optional<AuthQuery> read_auth_query(std::string_view target, std::string& problem) {
  AuthQuery query;
  const std::size_t question = target.find('?');
  std::string_view rest = question == std::string_view::npos ? std::string_view{} : target.substr(question + 1);
  while (!rest.empty()) {
    const std::size_t end = rest.find('&');
    const std::string_view pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    if (pair.empty()) continue;
    const std::string_view name = pair.substr(0, pair.find('='));
    std::string value;
    if (name.size() < pair.size()) request::append_decoded(pair.substr(name.size() + 1), value);
    if (name == "domain") {
      query.domain = std::move(value);
    } else if (name == "allow_status") {
      query.allow_status = read_status(value, 200, 204);
      if (!query.allow_status) problem = "allow_status: expected 200 or 204";
    } else if (name == "deny_status") {
      query.deny_status = read_status(value, 429, 403);
      if (!query.deny_status) problem = "deny_status: expected 429 or 403";
    } else if (name == "from" && (value == "x-forwarded" || value == "x-original")) {
      query.from = value == "x-forwarded" ? AuthQuery::From::x_forwarded : AuthQuery::From::x_original;
    } else if (name == "from") {
      problem = "from: expected x-forwarded or x-original";
    } else {
      problem = "unknown parameter; there are domain, allow_status, deny_status and from";
    }
    if (!problem.empty()) return std::nullopt;
  }
  return query;
}

std::string_view absent_field(KeptHead& head, AuthQuery::From from) {
  HttpRequest request;
  request.headers = head.fields();
  const auto is_told = [&](std::string_view name) { return !field(request, name).empty(); };
  switch (from) {
    case AuthQuery::From::any:
      break;
    case AuthQuery::From::x_forwarded:
      if (!is_told("x-forwarded-uri")) return "X-Forwarded-Uri";
      if (!is_told("x-forwarded-method")) return "X-Forwarded-Method";
      break;
    case AuthQuery::From::x_original:
      if (!is_told("x-original-uri") && !is_told("x-original-url")) return "X-Original-URI";
      if (!is_told("x-original-method")) return "X-Original-Method";
      break;
  }
  return {};
}

HttpRequest client_request(KeptHead& head, AuthForm form, AuthQuery::From from, std::string_view peer) {
  HttpRequest request;
  request.peer = peer;
  request.headers = head.fields();
  request.method = head.method();
  request.host = field(request, "host");
  if (form == AuthForm::ext_authz) {
    request.target = origin_form(head.target()).substr(kExtAuthz.size());
    request.scheme = field(request, "x-forwarded-proto");
    return request;
  }
  const auto told = [&](std::string_view method, std::string_view uri) {
    if (const std::string_view text = field(request, method); !text.empty()) request.method = text;
    request.target = origin_form(field(request, uri));
    return !request.target.empty();
  };
  const bool is_forwarded = from != AuthQuery::From::x_original && told("x-forwarded-method", "x-forwarded-uri");
  if (!is_forwarded && from != AuthQuery::From::x_forwarded) {
    request.method = head.method();
    if (!told("x-original-method", "x-original-uri")) (void)told("x-original-method", "x-original-url");
  }
  if (from != AuthQuery::From::x_original) {
    if (const std::string_view host = field(request, "x-forwarded-host"); !host.empty()) request.host = host;
    request.scheme = field(request, "x-forwarded-proto");
  }
  return request;
}

}  // namespace sluice::http
