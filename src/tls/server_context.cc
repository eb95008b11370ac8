#include "tls/server_context.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <span>
#include <utility>

#include "base/ascii.h"
#include "base/log.h"
#include "identity/openssl_owner.h"
#include "tls/openssl_error.h"

namespace sluice::tls {
namespace {

using identity::OpenSslOwner;
using Bio = OpenSslOwner<BIO, BIO_free>;
using Certificate = OpenSslOwner<X509, X509_free>;
using Key = OpenSslOwner<EVP_PKEY, EVP_PKEY_free>;
using Names = OpenSslOwner<GENERAL_NAMES, GENERAL_NAMES_free>;

// What HTTP/2 allows (RFC 9113, 9.2.2), and no others for anybody. TLS 1.3 has ciphers of its own.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr std::string_view kSessions = "sluice";

Bio read_from(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(std::min<std::size_t>(text.size(), INT32_MAX))));
}

/// The next certificate; null: there is none, or it is broken, as take_reason() tells then.
Certificate next_certificate(BIO& from) {
  ERR_clear_error();
  Certificate found(PEM_read_bio_X509(&from, nullptr, nullptr, nullptr));
  if (found == nullptr && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) ERR_clear_error();
  return found;
}

/// Notes that a passphrase is asked for, and has none.
int no_passphrase(char* /*room*/, int /*size*/, int /*writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

std::int64_t unix_seconds(const ASN1_TIME& time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(&time, &parts) != 1) return 0;
  return static_cast<std::int64_t>(::timegm(&parts));
}

std::string_view text_of(const ASN1_STRING& text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(&text)),
          static_cast<std::size_t>(ASN1_STRING_length(&text))};
}

bool is_one_of(const GENERAL_NAME& name, const std::vector<std::string>& wanted) {
  int type = 0;
  const void* const value = GENERAL_NAME_get0_value(&name, &type);
  if (type != GEN_DNS && type != GEN_URI && type != GEN_EMAIL) return false;
  const std::string_view text = text_of(*static_cast<const ASN1_STRING*>(value));
  return std::ranges::any_of(
      wanted, [&](const std::string& one) { return type == GEN_DNS ? equal_ignoring_case(text, one) : text == one; });
}

/// Called for each certificate of a client's chain, from the authority's to its own.
int verify_client(int is_good, X509_STORE_CTX* chain) {
  if (is_good != 1 || X509_STORE_CTX_get_error_depth(chain) != 0) return is_good;
  const auto* const ssl =
      static_cast<const SSL*>(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const auto& wanted = static_cast<const ServerOptions*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)))->client_names;
  if (wanted.empty()) return 1;
  X509* const certificate = X509_STORE_CTX_get_current_cert(chain);
  const Names names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    if (is_one_of(*sk_GENERAL_NAME_value(names.get(), i), wanted)) return 1;
  }
  X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

/// `ours`: the std::string of the protocol spoken here.
int choose_protocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned int offered_size, void* ours) {
  const std::string_view mine = *static_cast<const std::string*>(ours);
  std::string_view list(reinterpret_cast<const char*>(offered), offered_size);
  while (!list.empty()) {
    const std::size_t size = std::min<std::size_t>(1U + static_cast<unsigned char>(list.front()), list.size());
    if (list.substr(0, size) == mine) {
      *chosen = reinterpret_cast<const unsigned char*>(list.data()) + 1;
      *chosen_size = static_cast<unsigned char>(size - 1);
      return SSL_TLSEXT_ERR_OK;
    }
    list.remove_prefix(size);
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

void set_up(SSL_CTX& context) {
  SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(&context, kCiphers);
  SSL_CTX_set_options(&context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(&context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(&context, 1);
  // Clients may resume sessions by tickets, whose keys are this context's own; nothing is kept here.
  SSL_CTX_set_session_cache_mode(&context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_session_id_context(&context, reinterpret_cast<const unsigned char*>(kSessions.data()),
                                 static_cast<unsigned>(kSessions.size()));
}

}  // namespace

ServerContext::ServerContext(std::string setting, ServerOptions options, std::string_view alpn)
    : setting_(std::move(setting)),
      options_(std::move(options)),
      alpn_(alpn.empty() ? std::string() : static_cast<char>(alpn.size()) + std::string(alpn)) {}

Result<std::unique_ptr<ServerContext>> ServerContext::open(std::string setting, ServerOptions options,
                                                           std::string_view alpn) {
  std::unique_ptr<ServerContext> made(new ServerContext(std::move(setting), std::move(options), alpn));
  if (auto error = made->load()) return *std::move(error);
  return made;
}

std::unique_ptr<Channel> ServerContext::accept() const {
  SSL* const ssl = SSL_new(context_.get());
  if (ssl == nullptr) {
    ERR_clear_error();
    return nullptr;
  }
  return std::make_unique<Channel>(ssl);
}

ServerContext::Stamps ServerContext::stamps() const {
  const auto stamp = [](const std::string& path) {
    return path.empty() ? identity::FileStamp{} : identity::stamp_of(path);
  };
  return {stamp(options_.cert), stamp(options_.key), stamp(options_.client_ca)};
}

ServerContext::Reload ServerContext::look() {
  if (stamps() == seen_) {
    if (problem_.empty() || std::exchange(has_told_, true)) return Reload::unchanged;
    log::error("TLS files have changed and cannot be used; the old ones stay in force", {{"reason", problem_}});
    return Reload::refused;
  }
  const std::optional<Error> error = load();
  problem_ = error ? error->message : std::string();
  has_told_ = false;
  if (error) return Reload::unchanged;
  log::info("TLS files have changed and were read again", {{"setting", setting_}, {"certificate", options_.cert}});
  return Reload::loaded;
}

ServerContext::Reload ServerContext::reload() {
  const Stamps before = seen_;
  const std::optional<Error> error = load();
  problem_ = error ? error->message : std::string();
  has_told_ = true;
  if (error) {
    log::error("TLS files cannot be used; the old ones stay in force", {{"reason", problem_}});
    return Reload::refused;
  }
  return before == seen_ ? Reload::unchanged : Reload::loaded;
}

Error ServerContext::wrong(std::string_view name, const std::string& path, std::string_view what) const {
  return Error{setting_ + "." + std::string(name) + ": " + path + ": " + std::string(what)};
}

Result<std::string> ServerContext::read(std::string_view name, const std::string& path,
                                        identity::FileStamp& stamp) const {
  Result<std::string> text = identity::read_file(path, stamp);
  if (!text) return wrong(name, path, text.error().message);
  return text;
}

std::optional<Error> ServerContext::load() {
  if (options_.key.empty()) return Error{setting_ + ".key: the certificate's key is wanted, in a file of its own"};
  Stamps seen{};
  std::int64_t expires = 0;
  Context made(SSL_CTX_new(TLS_server_method()));
  std::optional<Error> error;
  if (made == nullptr) {
    error = Error{setting_ + ": OpenSSL: " + take_reason()};
  } else {
    set_up(*made);
    error = use_certificate(*made, seen, expires);
    if (!error && !options_.client_ca.empty()) error = use_client_authorities(*made, seen);
  }
  // What was not looked at for an error in front of it is as it is now.
  const Stamps now = stamps();
  for (std::size_t i = 0; i < now.size(); ++i) seen_[i] = seen[i] == identity::FileStamp{} ? now[i] : seen[i];
  if (error) return error;
  if (!alpn_.empty()) {
    SSL_CTX_set_alpn_select_cb(made.get(), choose_protocol,
                               const_cast<std::string*>(&alpn_));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }
  SSL_CTX_set_app_data(made.get(),
                       const_cast<ServerOptions*>(&options_));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  context_ = std::move(made);
  expires_.store(expires, std::memory_order_relaxed);
  if (expires < static_cast<std::int64_t>(std::time(nullptr))) {
    log::warn("a certificate has expired, so clients will refuse it",
              {{"setting", setting_ + ".cert"}, {"file", options_.cert}});
  }
  return std::nullopt;
}

std::optional<Error> ServerContext::use_certificate(SSL_CTX& context, Stamps& seen, std::int64_t& expires) const {
  const Result<std::string> chain = read("cert", options_.cert, seen[0]);
  if (!chain) return chain.error();
  const Bio certificates = read_from(*chain);
  const Certificate own = next_certificate(*certificates);
  if (own == nullptr) {
    const std::string reason = take_reason();
    return wrong("cert", options_.cert,
                 reason.empty() ? "holds no certificate; expected PEM, -----BEGIN CERTIFICATE-----"
                                : "holds a broken certificate: " + reason);
  }
  if (SSL_CTX_use_certificate(&context, own.get()) != 1) {
    return wrong("cert", options_.cert, "cannot be used: " + take_reason() + "; make a new one");
  }
  expires = unix_seconds(*X509_get0_notAfter(own.get()));
  while (const Certificate next = next_certificate(*certificates)) {
    if (SSL_CTX_add1_chain_cert(&context, next.get()) != 1) {
      return wrong("cert", options_.cert, "holds a chain that cannot be used: " + take_reason());
    }
  }
  if (const std::string reason = take_reason(); !reason.empty()) {
    return wrong("cert", options_.cert, "holds a broken certificate behind the first: " + reason);
  }

  const Result<std::string> text = read("key", options_.key, seen[1]);
  if (!text) return text.error();
  const Bio keys = read_from(*text);
  bool has_passphrase = false;
  const Key key(PEM_read_bio_PrivateKey(keys.get(), nullptr, no_passphrase, &has_passphrase));
  if (key == nullptr) {
    ERR_clear_error();
    return wrong("key", options_.key,
                 has_passphrase ? "needs a passphrase; store it without one (openssl pkey -in FILE -out NEW), readable "
                                  "by this user alone"
                                : "holds no private key; expected PEM, -----BEGIN PRIVATE KEY-----");
  }
  if (SSL_CTX_use_PrivateKey(&context, key.get()) != 1 || SSL_CTX_check_private_key(&context) != 1) {
    ERR_clear_error();
    return wrong("key", options_.key, "is not the key of the certificate in " + options_.cert + "; give the pair");
  }
  return std::nullopt;
}

std::optional<Error> ServerContext::use_client_authorities(SSL_CTX& context, Stamps& seen) const {
  const Result<std::string> text = read("client_ca", options_.client_ca, seen[2]);
  if (!text) return text.error();
  const Bio certificates = read_from(*text);
  X509_STORE* const store = SSL_CTX_get_cert_store(&context);
  std::size_t count = 0;
  while (const Certificate next = next_certificate(*certificates)) {
    ++count;
    if (X509_STORE_add_cert(store, next.get()) != 1 || SSL_CTX_add_client_CA(&context, next.get()) != 1) {
      return wrong("client_ca", options_.client_ca, "cannot be used: " + take_reason());
    }
  }
  const std::string reason = take_reason();
  if (count == 0 || !reason.empty()) {
    return wrong("client_ca", options_.client_ca,
                 reason.empty() ? "holds no certificate; expected PEM, -----BEGIN CERTIFICATE-----"
                                : "holds a broken certificate: " + reason);
  }
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | (options_.client_optional ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT),
                     verify_client);
  return std::nullopt;
}

}  // namespace sluice::tls
