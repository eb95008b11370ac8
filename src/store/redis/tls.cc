#include "store/redis/tls.h"

#include <boost/asio/ssl/verify_mode.hpp>
#include <utility>

#include "base/log.h"
#include "base/read_file.h"

namespace sluice::store::redis {

namespace ssl = boost::asio::ssl;

Result<std::unique_ptr<Tls>> Tls::create(const TlsFiles& files, Notices* notices) {
  if (files.cert.empty() != files.key.empty()) {
    return Error{"Redis TLS: a certificate and its key must be given together, by " + files.setting + ".cert and .key"};
  }
  std::unique_ptr<Tls> tls(new Tls(files, notices));
  tls->loaded_ = tls->stamps();
  auto context = tls->load();
  if (!context) return context.error();
  tls->context_ = *std::move(context);
  return tls;
}

std::vector<std::optional<FileStamp>> Tls::stamps() const {
  return {FileStamp::of(files_.ca), FileStamp::of(files_.cert), FileStamp::of(files_.key)};
}

Tls::Context Tls::context() {
  if (auto found = stamps(); found != loaded_) {
    loaded_ = std::move(found);
    const std::string topic = files_.setting;
    if (auto context = load()) {
      context_ = *std::move(context);
      if (notices_ != nullptr) notices_->forget(topic);
    } else if (notices_ == nullptr || notices_->is_news(topic, context.error().message)) {
      log::error("redis: changed TLS files cannot be used, the old ones stay in force",
                 {{"detail", context.error().message}});
    }
  }
  return context_;
}

Result<Tls::Context> Tls::load() const {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_client);
  boost::system::error_code error;
  const auto failed = [&](const std::string& file, const char* what) {
    return Error{"Redis TLS: " + file + ": cannot use it as " + what + ": " + error.message()};
  };
  for (const std::string* file : {&files_.ca, &files_.cert, &files_.key}) {
    if (const auto refusal = refusal_of_irregular(*file)) return Error{"Redis TLS: " + *file + ": " + refusal->message};
  }
  context->set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 | ssl::context::no_sslv3 |
                       ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  if (files_.ca.empty()) {
    context->set_default_verify_paths(error);
    if (error) return Error{"Redis TLS: the system's certificates cannot be read: " + error.message()};
  } else {
    context->load_verify_file(files_.ca, error);
    if (error) return failed(files_.ca, "the trusted authorities' certificates");
  }
  if (!files_.cert.empty()) {
    context->use_certificate_chain_file(files_.cert, error);
    if (error) return failed(files_.cert, "a certificate");
    context->use_private_key_file(files_.key, ssl::context::pem, error);
    if (error) return failed(files_.key, "the certificate's key");
  }
  context->set_verify_mode(files_.verify ? ssl::verify_peer : ssl::verify_none);
  return context;
}

}  // namespace sluice::store::redis
