#include "request/lookup.h"

#include "base/ascii.h"
#include "request/percent.h"

namespace sluice::request {
namespace {

std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return part;
}

FoundHeader found(std::string_view value) {
  if (value.empty()) return {};
  return {.first = value, .count = 1};
}

FoundHeader find_pseudo(const HttpRequest& request, std::string_view name) {
  if (name == ":path") return found(request.target);
  if (name == ":method") return found(request.method);
  if (name == ":authority") return found(request.host);
  if (name == ":scheme") return found(request.scheme);
  return {};
}

std::string_view without_quotes(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return value;
  return value.substr(1, value.size() - 2);
}

}  // namespace

FoundHeader find_header(const HttpRequest& request, std::string_view name) {
  if (name.starts_with(':')) return find_pseudo(request, name);
  FoundHeader found;
  for (const HeaderField& field : request.headers) {
    if (field.name.size() != name.size() || !equal_ignoring_case(field.name, name)) continue;
    if (found.count++ == 0) found.first = field.value;
  }
  // HTTP/2 has no such field, and frameworks give it apart.
  if (found.count == 0 && name == "host") return find_pseudo(request, ":authority");
  return found;
}

void append_normal_host(std::string_view host, std::string& out) {
  const std::size_t colon = host.ends_with(']') ? std::string_view::npos : host.rfind(':');
  std::string_view name = host.substr(0, colon);
  std::string_view rest = host.substr(name.size());
  if (rest == ":80" || rest == ":443") rest = {};
  if (name.ends_with('.')) name.remove_suffix(1);
  for (const char c : name) out += to_lower(c);
  out += rest;
}

std::optional<std::string_view> find_cookie(const HttpRequest& request, std::string_view name) {
  for (const HeaderField& field : request.headers) {
    if (!equal_ignoring_case(field.name, "cookie")) continue;
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const std::string_view pair = trim(take_part(rest, ';'));
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos || trim(pair.substr(0, equals)) != name) continue;
      return without_quotes(trim(pair.substr(equals + 1)));
    }
  }
  return std::nullopt;
}

bool find_parameter(std::string_view target, std::string_view name, std::string& value) {
  const std::size_t question = target.find('?');
  if (question == std::string_view::npos) return false;
  std::string_view rest = target.substr(question + 1);
  rest = rest.substr(0, rest.find('#'));
  while (!rest.empty()) {
    const std::string_view pair = take_part(rest, '&');
    const std::size_t equals = pair.find('=');
    value.clear();
    append_decoded(pair.substr(0, equals), value);
    if (value != name) continue;
    value.clear();
    if (equals != std::string_view::npos) append_decoded(pair.substr(equals + 1), value);
    return true;
  }
  return false;
}

}  // namespace sluice::request
