#include "identity/jwt_algorithm.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace sluice::identity {
namespace {

struct Row {
  KeyKind kind;
  unsigned hash_bytes;
};

// Both in the order of the enumeration.
constexpr std::array<std::string_view, 13> kNames{"HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256",
                                                  "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"};
constexpr std::array<Row, 13> kRows{{{KeyKind::secret, 32},
                                     {KeyKind::secret, 48},
                                     {KeyKind::secret, 64},
                                     {KeyKind::rsa, 32},
                                     {KeyKind::rsa, 48},
                                     {KeyKind::rsa, 64},
                                     {KeyKind::rsa, 32},
                                     {KeyKind::rsa, 48},
                                     {KeyKind::rsa, 64},
                                     {KeyKind::p256, 32},
                                     {KeyKind::p384, 48},
                                     {KeyKind::p521, 64},
                                     {KeyKind::edwards, 0}}};

}  // namespace

KeyKind kind_for(JwtAlgorithm algorithm) { return kRows[static_cast<std::size_t>(algorithm)].kind; }

unsigned hash_bytes(JwtAlgorithm algorithm) { return kRows[static_cast<std::size_t>(algorithm)].hash_bytes; }

std::optional<JwtAlgorithm> find_algorithm(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<JwtAlgorithm>(found - kNames.begin());
}

std::string_view name_of(JwtAlgorithm algorithm) { return kNames[static_cast<std::size_t>(algorithm)]; }

std::span<const std::string_view> algorithm_names() { return kNames; }

}  // namespace sluice::identity
