// A key that signatures of tokens are checked by.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "identity/jwt_algorithm.h"

struct evp_pkey_st;

namespace sluice::identity {

struct FreeKey {
  void operator()(evp_pkey_st* key) const;
};
using KeyPointer = std::unique_ptr<evp_pkey_st, FreeKey>;

/// A secret or a public key, with what may be done by it. Immutable; may be used by several threads at once.
class VerificationKey {
 public:
  /// Any bytes but none.
  [[nodiscard]] static VerificationKey from_secret(std::string secret);
  /// RSA from 2048 to 16384 bits and with an odd exponent from 3, P-256, P-384, P-521, Ed25519, Ed448.
  [[nodiscard]] static Result<VerificationKey> from_public(KeyPointer pointer);

  /// Is `signature` that of `signed_text`? False as well for an algorithm of another kind of key, and for one that is
  /// not the key's own where that says so. Cost: some 1 µs (HS), 20–40 µs (RS, PS 2048), 50–150 µs (ES, EdDSA).
  [[nodiscard]] bool verifies(JwtAlgorithm algorithm, std::string_view signed_text, std::string_view signature) const;

  [[nodiscard]] KeyKind kind() const { return kind_; }
  [[nodiscard]] const std::string& id() const { return id_; }
  void set_id(std::string id) { id_ = std::move(id); }
  /// This one only ("alg" of a JWK).
  void restrict_to(JwtAlgorithm algorithm) { only_ = algorithm; }
  [[nodiscard]] bool allows(JwtAlgorithm algorithm) const {
    return kind_for(algorithm) == kind_ && (!only_ || *only_ == algorithm);
  }
  /// Bytes of a secret.
  [[nodiscard]] std::size_t secret_size() const { return secret_.size(); }

 private:
  VerificationKey() = default;
  KeyKind kind_ = KeyKind::secret;
  std::string id_;  ///< "kid"; empty: none
  std::optional<JwtAlgorithm> only_;
  std::string secret_;
  KeyPointer key_;
};

/// Keys of one file. Immutable.
class KeySet {
 public:
  /// Public keys and certificates; one or more of them.
  [[nodiscard]] static Result<std::shared_ptr<const KeySet>> from_pem(std::string_view text);
  /// A JWK Set (RFC 7517). Keys for other uses than signatures, and of kinds that are not known here, are passed over;
  /// one at least must be left.
  [[nodiscard]] static Result<std::shared_ptr<const KeySet>> from_jwks(std::string_view text);
  /// The text is the secret; a line end at its end is not.
  [[nodiscard]] static Result<std::shared_ptr<const KeySet>> from_secret(std::string_view text);

  static constexpr std::size_t kMostKeys = 100;

  explicit KeySet(std::vector<VerificationKey> keys) : keys_(std::move(keys)) {}
  [[nodiscard]] std::span<const VerificationKey> keys() const { return keys_; }

 private:
  std::vector<VerificationKey> keys_;
};

}  // namespace sluice::identity
