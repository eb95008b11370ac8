// TLS on the listeners of the real binary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/support/certificates.h"
#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"
#include "tests/integration/support/tls_client.h"

namespace {

using namespace std::string_literals;
using sluice::test::Daemon;
using sluice::test::Ended;
using sluice::test::HttpClient;
using sluice::test::run_sluice;
using sluice::test::TempFolder;
using sluice::test::TlsClient;
using sluice::test::TlsClientOptions;
using sluice::testing::Certificates;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kArticle = SLUICE_SOURCE_DIR "/examples/policies/article.yaml";
const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"s;

/// Certificates in a folder that goes with the test.
struct Authority {
  TempFolder folder;
  Certificates files{folder.path()};

  [[nodiscard]] std::vector<std::string> flags(const std::string& listener, bool mutual = false) const {
    const std::string begin = "--listen." + listener + ".tls.";
    std::vector<std::string> all{begin + "cert", files.cert(Certificates::kServer), begin + "key",
                                 files.key(Certificates::kServer)};
    if (mutual) all.insert(all.end(), {begin + "client_ca", files.ca()});
    return all;
  }
  [[nodiscard]] TlsClientOptions client(const std::string& whose = "") const {
    TlsClientOptions options;
    options.ca = files.ca();
    if (!whose.empty()) {
      options.cert = files.cert(whose);
      options.key = files.key(whose);
    }
    return options;
  }
};

std::vector<std::string> join(std::vector<std::string> flags, const std::vector<std::string>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

/// Does an HTTPS request get its answer?
testing::AssertionResult is_served(const std::string& address, const TlsClientOptions& options) {
  TlsClient client(address, options);
  const std::string answer = client.get("/healthcheck", "OK");
  if (answer.starts_with("HTTP/1.1 200")) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << answer << "', " << client.error();
}

/// Why it gets none.
std::string refusal(const std::string& address, const TlsClientOptions& options) {
  TlsClient client(address, options);
  const std::string answer = client.get("/healthcheck", "OK");
  return answer.empty() ? client.error() : "it was served: " + answer;
}

TEST(DaemonTls, EveryListenerSpeaksIt) {
  const Authority authority;
  std::vector<std::string> flags{"--listen.grpc", "127.0.0.1:0", "--listen.resp", "127.0.0.1:0"};
  for (const char* listener : {"grpc", "http", "resp", "admin"}) flags = join(flags, authority.flags(listener));
  Daemon daemon(kArticle, flags);
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  const TlsClientOptions options = authority.client();
  EXPECT_TRUE(is_served(daemon.http(), options));
  EXPECT_TRUE(is_served(daemon.admin(), options));
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClientOptions one = options;
    one.version = version;
    EXPECT_TRUE(is_served(daemon.http(), one));
  }
  TlsClientOptions old = options;
  old.version = TLS1_1_VERSION;
  EXPECT_THAT(refusal(daemon.http(), old), HasSubstr("protocol version"));

  TlsClientOptions web = options;
  web.alpn = "http/1.1";
  EXPECT_EQ(TlsClient(daemon.http(), web).protocol(), "http/1.1");
  EXPECT_THAT(TlsClient(daemon.grpc(), web).error(), HasSubstr("no application protocol"));
  TlsClientOptions h2 = options;
  h2.alpn = "h2";
  TlsClient grpc(daemon.grpc(), h2);
  EXPECT_EQ(grpc.protocol(), "h2");
  grpc.send(kPreface);
  EXPECT_EQ(grpc.receive(9).substr(3, 1), "\x04") << grpc.error();  // SETTINGS
  EXPECT_THAT(TlsClient(daemon.http(), h2).error(), HasSubstr("no application protocol"));

  TlsClient resp(daemon.process().line_after("listening resp ").value_or("127.0.0.1:1"), options);
  resp.send("PING\r\nCL.THROTTLE k 1 1 60\r\n");
  EXPECT_EQ(resp.receive_to("+PONG\r\n"), "+PONG\r\n");
  EXPECT_THAT(resp.receive(4), "*5\r\n");
  // Much of it, in both directions: many records, more than a socket holds.
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "ECHO " + std::string(40, 'x') + "\r\n";
  std::thread sender([&] { resp.send(many); });
  const std::string echoes = resp.receive(22 + 20'000 * (5 + 42));  // behind five integers
  sender.join();
  EXPECT_THAT(echoes, testing::EndsWith(std::string(40, 'x') + "\r\n")) << resp.error();
}

TEST(DaemonTls, PlainBytesAreRefusedAndHurtNobody) {
  const Authority authority;
  Daemon daemon(kArticle, authority.flags("http"));
  HttpClient plain(daemon.http());
  EXPECT_EQ(plain.get("/healthcheck").status, 0);
  EXPECT_TRUE(daemon.process().has_printed("a TLS handshake has failed")) << daemon.process().output();
  EXPECT_THAT(HttpClient(daemon.admin()).get("/metrics").body, HasSubstr("\nsluice_tls_handshake_failures_total 1\n"));
  const HttpClient silent(daemon.http());
  EXPECT_TRUE(is_served(daemon.http(), authority.client()));
}

TEST(DaemonTls, ClientsMustShowACertificateThatIsTrusted) {
  const Authority authority;
  Daemon daemon(kArticle, authority.flags("http", true));
  EXPECT_TRUE(is_served(daemon.http(), authority.client(Certificates::kClient)));
  EXPECT_THAT(refusal(daemon.http(), authority.client()), HasSubstr("certificate required"));
  EXPECT_THAT(refusal(daemon.http(), authority.client(Certificates::kStranger)), HasSubstr("unknown ca"));
  EXPECT_TRUE(is_served(daemon.http(), authority.client(Certificates::kClient)));
  EXPECT_TRUE(daemon.process().has_printed("peer did not return a certificate")) << daemon.process().output();
}

TEST(DaemonTls, TheCertificateMustNameOneWhoIsLetIn) {
  const Authority authority;
  const std::vector<std::string> flags = authority.flags("http", true);
  {
    Daemon daemon(kArticle, join(flags, {"--listen.http.tls.client_names", "spiffe://other",
                                         "--listen.http.tls.client_names", "CLIENT.test"}));
    EXPECT_TRUE(is_served(daemon.http(), authority.client(Certificates::kClient)));
  }
  Daemon daemon(kArticle, join(flags, {"--listen.http.tls.client_names", "other.test"}));
  EXPECT_THAT(refusal(daemon.http(), authority.client(Certificates::kClient)), HasSubstr("handshake failure"));
  EXPECT_TRUE(daemon.process().has_printed("names nobody in client_names")) << daemon.process().output();
}

TEST(DaemonTls, ACertificateMayBeOptional) {
  const Authority authority;
  Daemon daemon(kArticle, join(authority.flags("http", true), {"--listen.http.tls.client_cert", "optional"}));
  EXPECT_TRUE(is_served(daemon.http(), authority.client()));
  EXPECT_TRUE(is_served(daemon.http(), authority.client(Certificates::kClient)));
  EXPECT_THAT(refusal(daemon.http(), authority.client(Certificates::kStranger)), HasSubstr("unknown ca"));
}

TEST(DaemonTls, NewCertificatesAreTakenAndConnectionsKept) {
  const Authority authority;
  Daemon daemon(kArticle, authority.flags("http"));
  TlsClient old(daemon.http(), authority.client());
  const std::int64_t before = old.server_serial();
  EXPECT_THAT(old.get("/healthcheck", "OK"), StartsWith("HTTP/1.1 200"));

  // A pair that is none: the old one stays.
  const std::string cert = authority.files.cert(Certificates::kServer);
  const Certificates others(authority.folder.path());
  std::filesystem::copy_file(others.cert(Certificates::kClient), cert,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(daemon.process().has_printed("TLS files have changed and cannot be used")) << daemon.process().output();
  EXPECT_TRUE(daemon.process().has_printed("is not the key of the certificate in " + cert));
  EXPECT_THAT(old.get("/healthcheck", "OK"), StartsWith("HTTP/1.1 200"));

  const Certificates good(authority.folder.path());
  const auto end = std::chrono::steady_clock::now() + sluice::test::kPatience;
  while (!is_served(daemon.http(), authority.client()) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(daemon.process().has_printed("TLS files have changed and were read again")) << daemon.process().output();
  TlsClient fresh(daemon.http(), authority.client());
  EXPECT_GT(fresh.server_serial(), before) << fresh.error();
  EXPECT_THAT(old.get("/healthcheck", "OK"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(fresh.get("/healthcheck", "OK"), StartsWith("HTTP/1.1 200"));

  // Told at once when it is asked for.
  std::ofstream(authority.files.key(Certificates::kServer)) << "no key\n";
  daemon.process().signal(SIGHUP);
  EXPECT_TRUE(daemon.process().has_printed("holds no private key")) << daemon.process().output();
  EXPECT_TRUE(is_served(daemon.http(), authority.client()));
  const std::string metrics = HttpClient(daemon.admin()).get("/metrics").body;
  EXPECT_THAT(metrics, testing::Not(HasSubstr("sluice_tls_reloads_total{result=\"refused\"} 0\n")));
  EXPECT_THAT(metrics, testing::Not(HasSubstr("sluice_tls_reloads_total{result=\"ok\"} 0\n")));
}

TEST(DaemonTls, WhatCannotBeUsedIsToldAtTheStart) {
  const Authority authority;
  const auto start = [](const std::vector<std::string>& flags) {
    return run_sluice(join({"serve", "--policy", kArticle, "--listen.http", "127.0.0.1:0"}, flags)).output;
  };
  const std::string cert = authority.files.cert(Certificates::kServer);
  const std::string key = authority.files.key(Certificates::kServer);
  EXPECT_EQ(start({"--listen.http.tls.cert", "/nowhere.pem", "--listen.http.tls.key", key}),
            "sluice: listen.http.tls.cert: /nowhere.pem: cannot be read: No such file or directory\n");
  EXPECT_EQ(start({"--listen.http.tls.cert", cert}),
            "sluice: listen.http.tls.key: the certificate's key is wanted, in a file of its own\n");
  EXPECT_EQ(start({"--listen.http.tls.key", key}),
            "sluice: listen.http.tls.cert: TLS needs a certificate, too: name its file\n");
  EXPECT_EQ(
      start({"--listen.http.tls.cert", key, "--listen.http.tls.key", key}),
      "sluice: listen.http.tls.cert: " + key + ": holds no certificate; expected PEM, -----BEGIN CERTIFICATE-----\n");
  EXPECT_EQ(
      start({"--listen.http.tls.cert", cert, "--listen.http.tls.key", authority.files.key(Certificates::kClient)}),
      "sluice: listen.http.tls.key: " + authority.files.key(Certificates::kClient) +
          ": is not the key of the certificate in " + cert + "; give the pair\n");
  EXPECT_EQ(start(join(authority.flags("http"), {"--listen.http.tls.client_ca", key})),
            "sluice: listen.http.tls.client_ca: " + key +
                ": holds no certificate; expected PEM, -----BEGIN CERTIFICATE-----\n");

  const std::string locked = (authority.folder.path() / "locked.key").string();
  std::FILE* const out = std::fopen(locked.c_str(), "w");
  EVP_PKEY* const made = EVP_EC_gen("P-256");
  PEM_write_PrivateKey(out, made, EVP_aes_128_cbc(), nullptr, 0, nullptr, const_cast<char*>("secret"));
  EVP_PKEY_free(made);
  std::fclose(out);
  EXPECT_THAT(start({"--listen.http.tls.cert", cert, "--listen.http.tls.key", locked}),
              StartsWith("sluice: listen.http.tls.key: " + locked + ": needs a passphrase; store it without one"));
}

TEST(DaemonTls, OneListenerMayHaveABoundOfItsOwn) {
  Daemon daemon(kArticle, {"--listen.http.max_connections", "2"});
  HttpClient first(daemon.http());
  HttpClient second(daemon.http());
  EXPECT_EQ(first.get("/healthcheck").status, 200);
  EXPECT_EQ(second.get("/healthcheck").status, 200);
  HttpClient third(daemon.http());
  EXPECT_EQ(third.receive().status, 503);
  EXPECT_TRUE(third.ended());
  EXPECT_EQ(HttpClient(daemon.admin()).get("/healthcheck").status, 200);
  EXPECT_TRUE(daemon.process().has_printed("listen.http.max_connections is reached"));
}

}  // namespace
