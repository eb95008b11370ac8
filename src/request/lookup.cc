#include "request/lookup.h"

#include "base/ascii.h"
#include "identity/ip_address.h"
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

/// What would make a name another one to one reader than to the next.
constexpr std::string_view kNotInNames = " \t,/?#@[]\\";

/// Of what stands behind a host's name, ":8080" or nothing; nothing: it is no port. Empty: none, or http's or https's.
std::optional<std::string_view> port_of(std::string_view text) {
  if (text.empty()) return text;
  if (!text.starts_with(':')) return std::nullopt;
  text.remove_prefix(1);
  if (text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  while (text.size() > 1 && text.starts_with('0')) text.remove_prefix(1);
  constexpr std::string_view most = "65535";
  if (text.size() > most.size() || (text.size() == most.size() && text > most)) return std::nullopt;
  return text == "80" || text == "443" ? std::string_view{} : text;
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

HostForm append_normal_host(std::string_view host, std::string& out) {
  const bool is_literal = host.starts_with('[');
  std::string_view name = host.substr(0, is_literal ? host.find(']') + 1 : host.find(':'));
  const std::optional<std::string_view> port = port_of(host.substr(name.size()));
  if (!port) return HostForm::malformed;
  if (is_literal) {
    const auto address = identity::IpAddress::parse_node(name);
    if (!address) return HostForm::malformed;
    if (!address->is_v4()) out += '[';
    address->append_to(out);
    if (!address->is_v4()) out += ']';
  } else {
    if (name.find_first_of(kNotInNames) != std::string_view::npos) return HostForm::malformed;
    while (name.ends_with('.')) name.remove_suffix(1);
    if (name.empty()) return HostForm::none;
    for (const char c : name) out += to_lower(c);
  }
  if (!port->empty()) out.append(":").append(*port);
  return HostForm::good;
}

FoundCookie find_cookie(const HttpRequest& request, std::string_view name) {
  FoundCookie found;
  for (const HeaderField& field : request.headers) {
    if (!equal_ignoring_case(field.name, "cookie")) continue;
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const std::string_view pair = trim(take_part(rest, ';'));
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos || trim(pair.substr(0, equals)) != name) continue;
      const std::string_view value = without_quotes(trim(pair.substr(equals + 1)));
      if (!found.first) found.first = value;
      found.is_ambiguous = found.is_ambiguous || value != *found.first;
    }
  }
  return found;
}

bool find_parameter(std::string_view target, std::string_view name, std::string& value, bool* is_ambiguous) {
  const std::size_t question = target.find('?');
  if (question == std::string_view::npos) return false;
  std::string_view rest = target.substr(question + 1);
  rest = rest.substr(0, rest.find('#'));
  bool is_found = false;
  std::string other;
  while (!rest.empty()) {
    const std::string_view pair = take_part(rest, '&');
    const std::size_t equals = pair.find('=');
    std::string& text = is_found ? other : value;
    text.clear();
    append_decoded(pair.substr(0, equals), text);
    if (text != name) continue;
    text.clear();
    if (equals != std::string_view::npos) append_decoded(pair.substr(equals + 1), text);
    if (is_ambiguous == nullptr) return true;
    if (is_found && text != value) *is_ambiguous = true;
    is_found = true;
  }
  return is_found;
}

}  // namespace sluice::request
