// The signature algorithms of JSON Web Tokens (RFC 7518, RFC 8037), without "none".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::identity {

enum class JwtAlgorithm : std::uint8_t {
  hs256,
  hs384,
  hs512,
  rs256,
  rs384,
  rs512,
  ps256,
  ps384,
  ps512,
  es256,
  es384,
  es512,
  eddsa
};

/// What kind of key an algorithm works with. A key of one kind is never used with an algorithm of another, so that
/// nobody can have a public key taken for a secret.
enum class KeyKind : std::uint8_t { secret, rsa, p256, p384, p521, edwards };

[[nodiscard]] KeyKind kind_for(JwtAlgorithm algorithm);
/// Bytes of its hash; 0: EdDSA, which has its own.
[[nodiscard]] unsigned hash_bytes(JwtAlgorithm algorithm);
/// Case counts, as RFC 7515 has it.
[[nodiscard]] std::optional<JwtAlgorithm> find_algorithm(std::string_view name);
[[nodiscard]] std::string_view name_of(JwtAlgorithm algorithm);
/// All names.
[[nodiscard]] std::span<const std::string_view> algorithm_names();

}  // namespace sluice::identity
