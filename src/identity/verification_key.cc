#include "identity/verification_key.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "identity/openssl_owner.h"

namespace sluice::identity {
namespace {

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

const EVP_MD* hash_for(JwtAlgorithm algorithm) {
  switch (hash_bytes(algorithm)) {
    case 32:
      return EVP_sha256();
    case 48:
      return EVP_sha384();
    case 64:
      return EVP_sha512();
    default:
      return nullptr;
  }
}

bool is_pss(JwtAlgorithm algorithm) {
  return algorithm == JwtAlgorithm::ps256 || algorithm == JwtAlgorithm::ps384 || algorithm == JwtAlgorithm::ps512;
}

bool is_ecdsa(KeyKind kind) { return kind == KeyKind::p256 || kind == KeyKind::p384 || kind == KeyKind::p521; }

bool verify_hmac(std::string_view secret, JwtAlgorithm algorithm, std::string_view text, std::string_view signature) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  unsigned size = 0;
  if (HMAC(hash_for(algorithm), secret.data(), static_cast<int>(secret.size()), bytes_of(text), text.size(), mac.data(),
           &size) == nullptr) {
    return false;
  }
  return signature.size() == size && CRYPTO_memcmp(mac.data(), signature.data(), size) == 0;
}

/// JOSE has the two numbers one after the other, each as long as the curve's; OpenSSL wants them in DER.
bool to_der(std::string_view signature, std::string& der) {
  const OpenSslOwner<ECDSA_SIG, ECDSA_SIG_free> numbers(ECDSA_SIG_new());
  const auto half = static_cast<int>(signature.size() / 2);
  BIGNUM* r = BN_bin2bn(bytes_of(signature), half, nullptr);
  BIGNUM* s = BN_bin2bn(bytes_of(signature) + half, half, nullptr);
  if (numbers == nullptr || r == nullptr || s == nullptr || ECDSA_SIG_set0(numbers.get(), r, s) != 1) {
    BN_free(r);
    BN_free(s);
    return false;
  }
  unsigned char* out = nullptr;
  const int size = i2d_ECDSA_SIG(numbers.get(), &out);
  if (size <= 0) return false;
  der.assign(reinterpret_cast<const char*>(out), static_cast<std::size_t>(size));
  OPENSSL_free(out);
  return true;
}

std::size_t ecdsa_bytes(KeyKind kind) {
  switch (kind) {
    case KeyKind::p256:
      return 64;
    case KeyKind::p384:
      return 96;
    default:
      return 132;
  }
}

bool verify_public(evp_pkey_st* key, JwtAlgorithm algorithm, std::string_view text, std::string_view signature) {
  const OpenSslOwner<EVP_MD_CTX, EVP_MD_CTX_free> context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* parameters = nullptr;  // the context's
  if (context == nullptr || EVP_DigestVerifyInit(context.get(), &parameters, hash_for(algorithm), nullptr, key) != 1) {
    return false;
  }
  if (is_pss(algorithm) && (EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING) != 1 ||
                            EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST) != 1)) {
    return false;
  }
  return EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(text), text.size()) == 1;
}

using Number = OpenSslOwner<BIGNUM, BN_free>;

/// With an exponent of 1 a signature is the text itself, which anybody can write; an even one is no key's.
std::optional<Error> check_exponent(evp_pkey_st* key) {
  BIGNUM* found = nullptr;
  const bool has_one = EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &found) == 1;
  const Number exponent(found);
  if (has_one && BN_is_odd(found) == 1 && BN_is_one(found) == 0) return std::nullopt;
  constexpr int most_bits = 64;
  const bool is_short = has_one && BN_num_bits(found) <= most_bits;
  return Error{"an RSA key needs an odd public exponent from 3, found " +
               (is_short ? std::to_string(BN_get_word(found)) : std::string("another"))};
}

Result<KeyKind> kind_of(evp_pkey_st* key) {
  constexpr int least_bits = 2048;
  constexpr int most_bits = 16'384;
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA: {
      const int bits = EVP_PKEY_get_bits(key);
      if (bits < least_bits || bits > most_bits) {
        return Error{"an RSA key needs from 2048 to 16384 bits, found " + std::to_string(bits)};
      }
      if (auto problem = check_exponent(key)) return *std::move(problem);
      return KeyKind::rsa;
    }
    case EVP_PKEY_EC: {
      std::array<char, 64> group{};
      std::size_t size = 0;
      EVP_PKEY_get_group_name(key, group.data(), group.size(), &size);
      const std::string_view name(group.data(), size);
      if (name == SN_X9_62_prime256v1) return KeyKind::p256;
      if (name == SN_secp384r1) return KeyKind::p384;
      if (name == SN_secp521r1) return KeyKind::p521;
      return Error{"an elliptic curve key must be on P-256, P-384 or P-521, found " + std::string(name)};
    }
    case EVP_PKEY_ED25519:
    case EVP_PKEY_ED448:
      return KeyKind::edwards;
    default:
      return Error{"expected a key of kind RSA, EC, Ed25519 or Ed448, found another"};
  }
}

}  // namespace

void FreeKey::operator()(evp_pkey_st* key) const { EVP_PKEY_free(key); }

VerificationKey VerificationKey::from_secret(std::string secret) {
  VerificationKey key;
  key.kind_ = KeyKind::secret;
  key.secret_ = std::move(secret);
  return key;
}

Result<VerificationKey> VerificationKey::from_public(KeyPointer pointer) {
  const Result<KeyKind> kind = kind_of(pointer.get());
  if (!kind) return kind.error();
  VerificationKey key;
  key.kind_ = *kind;
  key.key_ = std::move(pointer);
  return key;
}

bool VerificationKey::verifies(JwtAlgorithm algorithm, std::string_view signed_text, std::string_view signature) const {
  if (!allows(algorithm)) return false;
  if (kind_ == KeyKind::secret) return verify_hmac(secret_, algorithm, signed_text, signature);
  if (!is_ecdsa(kind_)) return verify_public(key_.get(), algorithm, signed_text, signature);
  std::string der;
  return signature.size() == ecdsa_bytes(kind_) && to_der(signature, der) &&
         verify_public(key_.get(), algorithm, signed_text, der);
}

Result<std::shared_ptr<const KeySet>> KeySet::from_secret(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.empty()) return Error{"the secret is empty"};
  if (text.starts_with("-----BEGIN ")) {
    return Error{"this is a key in PEM form, not a secret: whoever has the public key could sign tokens with it"};
  }
  std::vector<VerificationKey> keys;
  keys.push_back(VerificationKey::from_secret(std::string(text)));
  return std::make_shared<const KeySet>(std::move(keys));
}

}  // namespace sluice::identity
