// Keys and tokens for tests, made by OpenSSL.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "identity/jwt_algorithm.h"
#include "identity/verification_key.h"

namespace sluice::identity {

[[nodiscard]] std::string base64url(std::string_view bytes);

/// A key that signs. Each kind is made once a process.
class Signer {
 public:
  explicit Signer(std::string secret) : secret_(std::move(secret)) {}
  explicit Signer(KeyPointer key) : key_(std::move(key)) {}

  /// The signature of `text`, as JOSE has it.
  [[nodiscard]] std::string sign(JwtAlgorithm algorithm, std::string_view text) const;
  [[nodiscard]] std::string token(JwtAlgorithm algorithm, std::string_view header, std::string_view payload) const;
  /// {"alg":…,"typ":"JWT"}
  [[nodiscard]] std::string token(JwtAlgorithm algorithm, std::string_view payload) const;
  /// The public key.
  [[nodiscard]] std::string pem() const;
  /// A JWK: members without braces, `"kty":"RSA","n":"…"`.
  [[nodiscard]] std::string jwk() const;

 private:
  std::string secret_;
  KeyPointer key_;
};

/// One that fits the algorithm.
[[nodiscard]] const Signer& signer_for(JwtAlgorithm algorithm);
/// Another RSA key.
[[nodiscard]] const Signer& other_rsa();

inline constexpr std::string_view kSecret =
    "a secret of more than sixty-four bytes, as HS512 wants it to be, and so on";

}  // namespace sluice::identity
