// Public keys in PEM form → KeySet.
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "identity/openssl_owner.h"
#include "identity/verification_key.h"

namespace sluice::identity {
namespace {

/// One block of a file, with OpenSSL's memory.
struct Block {
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_free(data);
  }
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;  // NOLINT(google-runtime-int): OpenSSL's
};

Result<KeyPointer> key_of(const Block& block) {
  const std::string_view name = block.name;
  const unsigned char* at = block.data;
  KeyPointer key;
  if (name == PEM_STRING_PUBLIC) {
    key.reset(d2i_PUBKEY(nullptr, &at, block.size));
  } else if (name == PEM_STRING_RSA_PUBLIC) {
    key.reset(d2i_PublicKey(EVP_PKEY_RSA, nullptr, &at, block.size));
  } else if (name == PEM_STRING_X509) {
    const OpenSslOwner<X509, X509_free> certificate(d2i_X509(nullptr, &at, block.size));
    if (certificate != nullptr) key.reset(X509_get_pubkey(certificate.get()));
  } else if (name.ends_with("PRIVATE KEY")) {
    return Error{"this is a private key, which belongs to whoever signs the tokens; expected the public one"};
  } else {
    return Error{"expected a PUBLIC KEY or a CERTIFICATE, found a block '" + std::string(name) + "'"};
  }
  if (key == nullptr) return Error{"the block '" + std::string(name) + "' cannot be read: it is damaged"};
  return key;
}

}  // namespace

Result<std::shared_ptr<const KeySet>> KeySet::from_pem(std::string_view text) {
  const OpenSslOwner<BIO, BIO_free> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  std::vector<VerificationKey> keys;
  for (;;) {
    Block block;
    if (bio == nullptr || PEM_read_bio(bio.get(), &block.name, &block.header, &block.data, &block.size) != 1) break;
    Result<KeyPointer> pointer = key_of(block);
    Result<VerificationKey> key = pointer ? VerificationKey::from_public(*std::move(pointer)) : pointer.error();
    ERR_clear_error();
    if (!key) {
      // Where there is one key alone, the file's name says which.
      return keys.empty() ? key.error() : Error{"key " + std::to_string(keys.size() + 1) + ": " + key.error().message};
    }
    if (keys.size() == kMostKeys) return Error{"more than " + std::to_string(kMostKeys) + " keys"};
    keys.push_back(*std::move(key));
  }
  ERR_clear_error();
  if (keys.empty()) return Error{"no key found; expected one that begins with -----BEGIN PUBLIC KEY-----"};
  return std::make_shared<const KeySet>(std::move(keys));
}

}  // namespace sluice::identity
