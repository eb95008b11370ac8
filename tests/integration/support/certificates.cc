#include "tests/integration/support/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <utility>

namespace sluice::testing {
namespace {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* what) const {
    Free(what);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Cert = std::unique_ptr<X509, Freer<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;

void require(bool done, const char* what) {
  if (!done) throw std::runtime_error(std::string("cannot make certificates: ") + what);
}

/// A key and what certifies it.
struct Holder {
  Key key;
  Cert cert;
};

void extend(X509& cert, const X509& issuer, int what, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, const_cast<X509*>(&issuer), &cert, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, what, value));
  require(extension != nullptr && X509_add_ext(&cert, extension.get(), -1) == 1, value);
}

/// Certified by `issuer`; null: by itself.
Holder make(const char* name, const Holder* issuer, bool is_authority, const char* usage) {
  Holder made{.key = Key(EVP_EC_gen("P-256")), .cert = Cert(X509_new())};
  require(made.key != nullptr && made.cert != nullptr, name);
  X509& cert = *made.cert;
  static long serial = 0;
  X509_set_version(&cert, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(&cert), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(&cert), -3'600);
  X509_gmtime_adj(X509_getm_notAfter(&cert), 86'400);
  X509_set_pubkey(&cert, made.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(&cert), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  const X509& by = issuer != nullptr ? *issuer->cert : cert;
  X509_set_issuer_name(&cert, X509_get_subject_name(&by));
  if (is_authority) {
    extend(cert, by, NID_basic_constraints, "critical,CA:TRUE");
    extend(cert, by, NID_key_usage, "critical,keyCertSign,cRLSign");
  } else {
    extend(cert, by, NID_ext_key_usage, usage);
    extend(cert, by, NID_subject_alt_name, (std::string("DNS:") + name).c_str());
  }
  EVP_PKEY& signer = issuer != nullptr ? *issuer->key : *made.key;
  require(X509_sign(&cert, &signer, EVP_sha256()) > 0, name);
  return made;
}

template <typename Write>
void write(const std::string& name, Write write_to) {
  const std::unique_ptr<std::FILE, Freer<std::fclose>> out(std::fopen(name.c_str(), "w"));
  require(out != nullptr && write_to(out.get()) == 1, name.c_str());
}

}  // namespace

Certificates::Certificates(std::filesystem::path folder) : folder_(std::move(folder)) {
  const auto keep = [this](const char* whose, const Holder& holder) {
    write(key(whose), [&](std::FILE* out) {
      return PEM_write_PrivateKey(out, holder.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    write(cert(whose), [&](std::FILE* out) { return PEM_write_X509(out, holder.cert.get()); });
  };
  const Holder authority = make("sluice test authority", nullptr, true, "");
  keep("ca", authority);
  // Servers are clients of each other.
  keep(kServer, make(kServerName, &authority, false, "serverAuth,clientAuth"));
  keep(kClient, make("client.test", &authority, false, "clientAuth"));
  keep(kLocal, make("localhost", &authority, false, "serverAuth"));
  keep(kStranger, make("stranger.test", nullptr, false, "clientAuth"));
}

}  // namespace sluice::testing
