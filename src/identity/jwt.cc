#include "identity/jwt.h"

#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <cmath>
#include <utility>

#include "identity/base64url.h"

namespace sluice::identity {
namespace {

namespace json = boost::json;

constexpr std::int64_t kSecond = 1'000'000'000;

struct Parts {
  std::string_view header;
  std::string_view payload;
  std::string_view signature;
  std::string_view signed_text;
};

std::optional<Parts> split(std::string_view token) {
  const std::size_t first = token.find('.');
  if (token.size() > kMaxToken || first == std::string_view::npos) return std::nullopt;
  const std::size_t second = token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos) return std::nullopt;
  return Parts{.header = token.substr(0, first),
               .payload = token.substr(first + 1, second - first - 1),
               .signature = token.substr(second + 1),
               .signed_text = token.substr(0, second)};
}

std::string_view view(const json::string& text) { return {text.data(), text.size()}; }

/// A part that holds a JSON object.
std::optional<json::object> read_object(std::string_view part) {
  std::string text;
  if (!decode_base64url(part, text)) return std::nullopt;
  boost::system::error_code problem;
  json::value value = json::parse(json::string_view(text.data(), text.size()), problem);
  if (problem || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

struct Header {
  std::optional<JwtAlgorithm> algorithm;  ///< nothing: not known here
  std::optional<std::string> key_id;
};

std::optional<Header> read_header(std::string_view part) {
  const std::optional<json::object> object = read_object(part);
  if (!object || object->contains("crit")) return std::nullopt;
  const json::value* const algorithm = object->if_contains("alg");
  if (algorithm == nullptr || !algorithm->is_string()) return std::nullopt;
  Header header{.algorithm = find_algorithm(view(algorithm->get_string())), .key_id = {}};
  if (const json::value* const id = object->if_contains("kid")) {
    if (!id->is_string()) return std::nullopt;
    header.key_id = view(id->get_string());
  }
  return header;
}

/// Does any key that may have signed it say so?
JwtFault check_signature(const Parts& parts, JwtAlgorithm algorithm, const std::optional<std::string>& key_id,
                         std::span<const KeySet* const> sets) {
  std::string signature;
  if (!decode_base64url(parts.signature, signature)) return JwtFault::malformed;
  // Where keys have names, the token's must be one of them; those without a name fit any.
  JwtFault fault = JwtFault::key;
  for (const KeySet* const set : sets) {
    for (const VerificationKey& key : set->keys()) {
      if (!key.allows(algorithm)) continue;
      if (key_id && !key.id().empty() && key.id() != *key_id) continue;
      fault = JwtFault::signature;
      const bool is_good = key.verifies(algorithm, parts.signed_text, signature);
      ERR_clear_error();
      if (is_good) return JwtFault::none;
    }
  }
  return fault;
}

/// Seconds since 1970, perhaps with a fraction, as ns. Nothing: no number, or none that is finite (1e400).
std::optional<std::int64_t> read_time(const json::value& value) {
  constexpr double farthest = 9.2e9;  // seconds; some 290 years
  double seconds = 0;
  if (value.is_int64()) {
    const std::int64_t whole = value.get_int64();
    if (std::abs(static_cast<double>(whole)) < farthest) return whole * kSecond;
    seconds = static_cast<double>(whole);
  } else if (value.is_uint64()) {
    seconds = static_cast<double>(value.get_uint64());
  } else if (value.is_double() && std::isfinite(value.get_double())) {
    seconds = value.get_double();
  } else {
    return std::nullopt;
  }
  if (seconds >= farthest) return INT64_MAX;
  if (seconds <= -farthest) return INT64_MIN;
  return static_cast<std::int64_t>(seconds * static_cast<double>(kSecond));
}

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? INT64_MAX : INT64_MIN;
}

/// Sets the times within which the token is good, or says what is wrong now.
JwtFault check_time(const json::object& claims, std::chrono::nanoseconds leeway, std::int64_t utc, Jwt& jwt) {
  if (const json::value* const expires = claims.if_contains("exp")) {
    const std::optional<std::int64_t> at = read_time(*expires);
    if (!at) return JwtFault::malformed;
    jwt.valid_until = saturating_add(*at, leeway.count());
  }
  if (const json::value* const begins = claims.if_contains("nbf")) {
    const std::optional<std::int64_t> at = read_time(*begins);
    if (!at) return JwtFault::malformed;
    jwt.valid_from = saturating_add(*at, -leeway.count());
  }
  if (utc >= jwt.valid_until) return JwtFault::expired;
  return utc < jwt.valid_from ? JwtFault::too_early : JwtFault::none;
}

bool is_one_of(const json::value& value, const std::vector<std::string>& allowed) {
  return value.is_string() && std::ranges::find(allowed, view(value.get_string())) != allowed.end();
}

JwtFault check_parties(const json::object& claims, const JwtRules& rules) {
  const json::value* const issuer = claims.if_contains("iss");
  if (!rules.issuers.empty() && (issuer == nullptr || !is_one_of(*issuer, rules.issuers))) return JwtFault::issuer;
  if (rules.audiences.empty()) return JwtFault::none;
  const json::value* const audience = claims.if_contains("aud");
  if (audience == nullptr) return JwtFault::audience;
  const json::array* const list = audience->if_array();
  const bool is_meant =
      list == nullptr
          ? is_one_of(*audience, rules.audiences)
          : std::ranges::any_of(*list, [&](const json::value& one) { return is_one_of(one, rules.audiences); });
  return is_meant ? JwtFault::none : JwtFault::audience;
}

template <typename T>
std::string as_text(T number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

/// The text that a claim is counted by.
std::optional<std::string> text_of(const json::value& value) {
  constexpr double exact = 9'007'199'254'740'992.0;  // beyond it a double is not one number
  switch (value.kind()) {
    case json::kind::string:
      if (value.get_string().empty()) return std::nullopt;
      return std::string(view(value.get_string()));
    case json::kind::int64:
      return as_text(value.get_int64());
    case json::kind::uint64:
      return as_text(value.get_uint64());
    case json::kind::double_: {
      const double number = value.get_double();
      // Two numbers that were different in the token must not count as one.
      if (!(std::abs(number) < exact)) return std::nullopt;
      if (number == std::trunc(number)) return as_text(static_cast<std::int64_t>(number));
      return as_text(number);
    }
    case json::kind::bool_:
      return value.get_bool() ? "true" : "false";
    case json::kind::null:
    case json::kind::array:
    case json::kind::object:
      break;
  }
  return std::nullopt;
}

std::optional<std::string> find_claim(const json::object& claims, std::span<const std::string> path) {
  const json::object* at = &claims;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const json::value* const value = at->if_contains(path[i]);
    if (value == nullptr) return std::nullopt;
    if (i + 1 == path.size()) return text_of(*value);
    at = value->if_object();
    if (at == nullptr) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::string_view describe(JwtFault fault) {
  switch (fault) {
    case JwtFault::none:
      break;
    case JwtFault::malformed:
      return "is malformed";
    case JwtFault::algorithm:
      return "has an algorithm that is not allowed";
    case JwtFault::key:
      return "names a key that is not known";
    case JwtFault::signature:
      return "has a wrong signature";
    case JwtFault::expired:
      return "has expired";
    case JwtFault::too_early:
      return "is not valid yet";
    case JwtFault::issuer:
      return "has another issuer";
    case JwtFault::audience:
      return "is for another audience";
  }
  return "is good";
}

Jwt verify_jwt(std::string_view token, const JwtRules& rules, std::span<const KeySet* const> keys, std::int64_t utc) {
  Jwt jwt;
  jwt.claims.resize(rules.claims.size());
  const auto refuse = [&](JwtFault fault) {
    jwt.fault = fault;
    return std::move(jwt);
  };
  const std::optional<Parts> parts = split(token);
  if (!parts) return refuse(JwtFault::malformed);
  const std::optional<Header> header = read_header(parts->header);
  if (!header) return refuse(JwtFault::malformed);
  if (!header->algorithm || std::ranges::find(rules.algorithms, *header->algorithm) == rules.algorithms.end()) {
    return refuse(JwtFault::algorithm);
  }
  if (const JwtFault fault = check_signature(*parts, *header->algorithm, header->key_id, keys); fault != JwtFault::none)
    return refuse(fault);
  // Only now, so that nothing but what a trusted key has signed is read any further.
  const std::optional<json::object> claims = read_object(parts->payload);
  if (!claims) return refuse(JwtFault::malformed);
  if (const JwtFault fault = check_time(*claims, rules.leeway, utc, jwt); fault != JwtFault::none) return refuse(fault);
  if (const JwtFault fault = check_parties(*claims, rules); fault != JwtFault::none) return refuse(fault);
  for (std::size_t i = 0; i < rules.claims.size(); ++i) jwt.claims[i] = find_claim(*claims, rules.claims[i]);
  return jwt;
}

}  // namespace sluice::identity
