#include "tests/unit/identity/token_maker.h"

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <array>

#include "identity/openssl_owner.h"

namespace sluice::identity {
namespace {

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

const EVP_MD* hash_of(JwtAlgorithm algorithm) {
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

std::string number_of(EVP_PKEY* key, const char* name, int size = 0) {
  BIGNUM* found = nullptr;
  EXPECT_EQ(EVP_PKEY_get_bn_param(key, name, &found), 1);
  const OpenSslOwner<BIGNUM, BN_free> number(found);
  std::string bytes(static_cast<std::size_t>(size == 0 ? BN_num_bytes(found) : size), '\0');
  BN_bn2binpad(found, reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  return bytes;
}

/// The two numbers of a DER signature, one after the other.
std::string joined(const std::string& der, int half) {
  const unsigned char* at = bytes_of(der);
  const OpenSslOwner<ECDSA_SIG, ECDSA_SIG_free> numbers(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())));
  std::string bytes(static_cast<std::size_t>(2 * half), '\0');
  auto* out = reinterpret_cast<unsigned char*>(bytes.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(numbers.get()), out, half);
  BN_bn2binpad(ECDSA_SIG_get0_s(numbers.get()), out + half, half);
  return bytes;
}

int coordinate_bytes(KeyKind kind) {
  if (kind == KeyKind::p256) return 32;
  return kind == KeyKind::p384 ? 48 : 66;
}

}  // namespace

std::string base64url(std::string_view bytes) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string out;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : bytes) {
    bits = bits << 8U | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) out += alphabet[bits >> (count - 6) & 63U];
  }
  if (count > 0) out += alphabet[bits << (6 - count) & 63U];
  return out;
}

std::string Signer::sign(JwtAlgorithm algorithm, std::string_view text) const {
  std::array<unsigned char, 4096> out{};
  if (key_ == nullptr) {
    unsigned size = 0;
    HMAC(hash_of(algorithm), secret_.data(), static_cast<int>(secret_.size()), bytes_of(text), text.size(), out.data(),
         &size);
    return {reinterpret_cast<const char*>(out.data()), size};
  }
  const OpenSslOwner<EVP_MD_CTX, EVP_MD_CTX_free> context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* parameters = nullptr;
  EXPECT_EQ(EVP_DigestSignInit(context.get(), &parameters, hash_of(algorithm), nullptr, key_.get()), 1);
  if (name_of(algorithm).starts_with("PS")) {
    EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING);
    EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST);
  }
  std::size_t size = out.size();
  EXPECT_EQ(EVP_DigestSign(context.get(), out.data(), &size, bytes_of(text), text.size()), 1);
  const std::string signature(reinterpret_cast<const char*>(out.data()), size);
  const bool is_ecdsa = name_of(algorithm).starts_with("ES");
  return is_ecdsa ? joined(signature, coordinate_bytes(kind_for(algorithm))) : signature;
}

std::string Signer::token(JwtAlgorithm algorithm, std::string_view header, std::string_view payload) const {
  const std::string text = base64url(header) + "." + base64url(payload);
  return text + "." + base64url(sign(algorithm, text));
}

std::string Signer::token(JwtAlgorithm algorithm, std::string_view payload) const {
  return token(algorithm, R"({"alg":")" + std::string(name_of(algorithm)) + R"(","typ":"JWT"})", payload);
}

std::string Signer::pem() const {
  const OpenSslOwner<BIO, BIO_free> bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PUBKEY(bio.get(), key_.get());
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &data);
  std::string text(data, static_cast<std::size_t>(size));
  return text;
}

std::string Signer::jwk() const {
  if (key_ == nullptr) return R"("kty":"oct","k":")" + base64url(secret_) + '"';
  switch (EVP_PKEY_get_base_id(key_.get())) {
    case EVP_PKEY_RSA:
      return R"("kty":"RSA","n":")" + base64url(number_of(key_.get(), OSSL_PKEY_PARAM_RSA_N)) + R"(","e":")" +
             base64url(number_of(key_.get(), OSSL_PKEY_PARAM_RSA_E)) + '"';
    case EVP_PKEY_EC: {
      const int bits = EVP_PKEY_get_bits(key_.get());
      const int size = (bits + 7) / 8;
      return R"("kty":"EC","crv":"P-)" + std::to_string(bits) + R"(","x":")" +
             base64url(number_of(key_.get(), OSSL_PKEY_PARAM_EC_PUB_X, size)) + R"(","y":")" +
             base64url(number_of(key_.get(), OSSL_PKEY_PARAM_EC_PUB_Y, size)) + '"';
    }
    default: {
      std::array<unsigned char, 64> raw{};
      std::size_t size = raw.size();
      EVP_PKEY_get_raw_public_key(key_.get(), raw.data(), &size);
      return R"("kty":"OKP","crv":"Ed25519","x":")" + base64url({reinterpret_cast<const char*>(raw.data()), size}) +
             '"';
    }
  }
}

const Signer& other_rsa() {
  static const Signer other(KeyPointer(EVP_RSA_gen(2048)));
  return other;
}

const Signer& signer_for(JwtAlgorithm algorithm) {
  static const Signer secret{std::string(kSecret)};
  static const Signer rsa(KeyPointer(EVP_RSA_gen(2048)));
  static const Signer p256(KeyPointer(EVP_EC_gen("P-256")));
  static const Signer p384(KeyPointer(EVP_EC_gen("P-384")));
  static const Signer p521(KeyPointer(EVP_EC_gen("P-521")));
  static const Signer edwards(KeyPointer(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")));
  switch (kind_for(algorithm)) {
    case KeyKind::secret:
      return secret;
    case KeyKind::rsa:
      return rsa;
    case KeyKind::p256:
      return p256;
    case KeyKind::p384:
      return p384;
    case KeyKind::p521:
      return p521;
    case KeyKind::edwards:
      break;
  }
  return edwards;
}

}  // namespace sluice::identity
