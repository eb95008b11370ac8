// JSON Web Tokens (RFC 7519): is one what it says, and what does it say?
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "identity/jwt_algorithm.h"
#include "identity/verification_key.h"

namespace sluice::identity {

/// Longest token that is looked at.
inline constexpr std::size_t kMaxToken = std::size_t{16} * 1024;

/// What a token must be, and what is wanted of it.
struct JwtRules {
  std::vector<JwtAlgorithm> algorithms;                        ///< no other is taken, whatever the token says
  std::vector<std::string> issuers;                            ///< one of these; empty: any
  std::vector<std::string> audiences;                          ///< one of the token's must be one of these; empty: any
  std::chrono::nanoseconds leeway = std::chrono::seconds(30);  ///< by which clocks may differ, at exp and nbf
  std::vector<std::vector<std::string>> claims;                ///< the wanted ones, each by the names on its path
};

/// Why a token is not believed.
enum class JwtFault : std::uint8_t { none, malformed, algorithm, key, signature, expired, too_early, issuer, audience };

/// A sentence's end: "the token …".
[[nodiscard]] std::string_view describe(JwtFault fault);

struct Jwt {
  JwtFault fault = JwtFault::none;
  /// The wanted claims in the order of the rules: strings as they are, numbers and booleans as JSON has them. Nothing:
  /// absent, empty, or a list or object. All are nothing when there is a fault.
  std::vector<std::optional<std::string>> claims;
  std::int64_t valid_from = INT64_MIN;   ///< UTC ns, leeway included
  std::int64_t valid_until = INT64_MAX;  ///< ″; at this instant it is no longer
};

/// Checks a compact token (three parts of base64url). Its algorithm must be in the rules and fit the key; a key that it
/// names ("kid") must be there, unless the keys have no names; extensions that are critical ("crit") are not
/// understood, so such a token is refused. Pure: `utc` is the time. Cost: see VerificationKey::verifies.
[[nodiscard]] Jwt verify_jwt(std::string_view token, const JwtRules& rules, std::span<const KeySet* const> keys,
                             std::int64_t utc);

}  // namespace sluice::identity
