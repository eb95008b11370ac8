// The real binary behind proxies and balancers: whose request it is, and answers that wait for their slot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"

namespace {

using namespace std::chrono_literals;
using sluice::test::Daemon;
using sluice::test::HttpAnswer;
using sluice::test::HttpClient;
using sluice::test::TempFolder;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kPolicy = R"(
domain: edge
descriptors:
  - key: remote_address
    rate_limit: { name: Two, algorithm: token_bucket, period: 366d, requests_per_unit: 2 }
  - key: slow
    rate_limit: { name: Slow, algorithm: leaky_bucket, period: 10s, requests_per_unit: 50, queue: 100, delay: hold }
requests:
  trusted_proxies: []
  rate_limits:
    - actions: [ remote_address ]
    - actions: [ { request_headers: { header_name: x-slow, descriptor_key: slow } } ]
)";

constexpr std::string_view kAsk = "GET /v1/authorize HTTP/1.1\r\nHost: x\r\n\r\n";

HttpAnswer ask(const Daemon& daemon, const std::string& header) {
  HttpClient client(daemon.http());
  client.send(header + std::string(kAsk));
  return client.receive();
}

TEST(ProxyProtocol, tells_whose_a_connection_is) {
  const TempFolder folder;
  const Daemon daemon(folder.write("p.yaml", kPolicy), {"--listen.proxy_protocol", "http"});
  ASSERT_TRUE(daemon.ready());
  const std::string one = "PROXY TCP4 198.51.100.1 10.0.0.1 1000 80\r\n";
  EXPECT_EQ(ask(daemon, one).status, 200);
  EXPECT_EQ(ask(daemon, "PROXY TCP6 ::ffff:198.51.100.1 ::1 2000 80\r\n").status, 200);
  EXPECT_EQ(ask(daemon, one).status, 429);
  EXPECT_EQ(ask(daemon, "PROXY TCP4 198.51.100.2 10.0.0.1 1000 80\r\n").status, 200);
  using namespace std::string_literals;
  const std::string two = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc6\x33\x64\x01\x0a\0\0\1\x30\x39\x01\xbb"s;
  EXPECT_EQ(ask(daemon, two).status, 429);

  // A byte at a time, and several requests after it.
  HttpClient slow(daemon.http());
  for (const char c : std::string("PROXY TCP4 198.51.100.3 10.0.0.1 1000 80\r\n")) slow.send(std::string_view(&c, 1));
  slow.send(std::string(kAsk) + std::string(kAsk) + std::string(kAsk));
  EXPECT_EQ(slow.receive().status, 200);
  EXPECT_EQ(slow.receive().status, 200);
  EXPECT_EQ(slow.receive().status, 429);
}

TEST(ProxyProtocol, a_connection_without_its_header_is_closed) {
  const TempFolder folder;
  const Daemon daemon(folder.write("p.yaml", kPolicy), {"--listen.proxy_protocol", "http"});
  ASSERT_TRUE(daemon.ready());
  for (const std::string_view other :
       {kAsk, std::string_view("PROXY TCP4 nonsense\r\n"), std::string_view("\r\n\r\nx")}) {
    HttpClient client(daemon.http());
    client.send(other);
    EXPECT_TRUE(client.ended()) << other;
  }
  EXPECT_EQ(ask(daemon, "PROXY UNKNOWN\r\n").status, 200);
}

std::string policy_trusting(std::string_view proxies) {
  std::string text(kPolicy);
  const std::string_view nobody = "trusted_proxies: []";
  return text.replace(text.find(nobody), nobody.size(), "trusted_proxies: [" + std::string(proxies) + "]");
}

std::string from(std::string_view client) {
  return "GET /v1/authorize HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: " + std::string(client) + "\r\n\r\n";
}

TEST(UnixSocket, a_proxy_there_that_is_trusted_tells_of_its_clients) {
  const TempFolder folder;
  const std::string address = "unix:" + (folder.path() / "http.sock").string();
  Daemon daemon(folder.write("p.yaml", policy_trusting("unix")), {"--listen.http", address});
  ASSERT_EQ(daemon.http(), address);
  HttpClient client(address);
  for (const int status : {200, 200, 429}) {
    client.send(from("1.1.1.1, 198.51.100.1"));
    EXPECT_EQ(client.receive().status, status);
  }
  client.send(from("198.51.100.2"));
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_THAT(daemon.process().output(), Not(HasSubstr("where peers have no address")));
}

TEST(UnixSocket, a_balancer_there_that_knows_no_client_is_trusted_itself) {
  const TempFolder folder;
  const std::string address = "unix:" + (folder.path() / "http.sock").string();
  const Daemon daemon(folder.write("p.yaml", policy_trusting("unix")),
                      {"--listen.http", address, "--listen.proxy_protocol", "http"});
  ASSERT_EQ(daemon.http(), address);
  HttpClient client(address);
  client.send("PROXY UNKNOWN\r\n");
  for (const int status : {200, 200, 429}) {
    client.send(from("198.51.100.1"));
    EXPECT_EQ(client.receive().status, status);
  }
}

TEST(UnixSocket, a_policy_that_counts_nobody_there_is_told_of_at_the_start_and_after_a_reload) {
  const TempFolder folder;
  const std::string address = "unix:" + (folder.path() / "http.sock").string();
  const std::string policy = folder.write("p.yaml", kPolicy);
  Daemon daemon(policy, {"--listen.http", address});
  ASSERT_EQ(daemon.http(), address);
  const std::string start = daemon.process().output();
  const std::string_view warning = "the HTTP listener is a Unix socket, where peers have no address";
  EXPECT_THAT(start, HasSubstr(warning));
  HttpClient client(address);
  client.send(from("198.51.100.1"));
  EXPECT_EQ(client.receive().status, 200);
  (void)folder.write("p.yaml", policy_trusting("10.0.0.0/8"));
  ASSERT_TRUE(daemon.process().has_printed("policy loaded again"));
  EXPECT_THAT(daemon.process().output().substr(start.size()), HasSubstr(warning));
}

/// A file of keys that are exchanged, and then broken, while nobody asks for anything.
class Rotation {
 public:
  Rotation(const TempFolder& folder, std::string_view first) : folder_(folder), path_(folder.write("keys", first)) {}
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Returns when the daemon has said `word` of it.
  void replace(const Daemon& daemon, std::string_view text, std::string_view word) const {
    std::filesystem::rename(folder_.write("keys.next", text), path_);
    EXPECT_TRUE(daemon.process().has_printed(word)) << text;
  }
  void run(const Daemon& daemon, std::string_view second) const {
    replace(daemon, second, "a file has changed and was read again");
    replace(daemon, "oops", "a file has changed and cannot be read; what it held before stays in force");
  }

 private:
  const TempFolder& folder_;
  std::string path_;
};

int status_of(const Daemon& daemon, const std::string& path, const std::string& field) {
  HttpClient client(daemon.http());
  client.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n" + field + "\r\n\r\n");
  return client.receive().status;
}

TEST(Rotation, a_token_taken_out_while_nobody_asked_stays_out_when_the_file_breaks) {
  const TempFolder folder;
  const Rotation rotation(folder, "ops old-token\n");
  const Daemon daemon(folder.write("p.yaml", kPolicy), {"--access.token_file", rotation.path()});
  ASSERT_TRUE(daemon.ready());
  rotation.run(daemon, "ops new-token\n");
  EXPECT_EQ(status_of(daemon, "/metrics", "Authorization: Bearer old-token"), 401);
  EXPECT_EQ(status_of(daemon, "/metrics", "Authorization: Bearer new-token"), 200);
}

TEST(Rotation, so_does_an_api_key) {
  const TempFolder folder;
  const Rotation rotation(folder, "alice old-key\n");
  const Daemon daemon(folder.write("p.yaml", R"(
domain: edge
descriptors: [ { key: api_key, rate_limit: { unit: day, requests_per_unit: 100 } } ]
requests:
  api_keys: { file: keys }
  rate_limits: [ { actions: [ { api_key: { header_name: x-key } } ] } ]
)"));
  ASSERT_TRUE(daemon.ready());
  rotation.run(daemon, "alice new-key\n");
  EXPECT_EQ(status_of(daemon, "/v1/authorize", "X-Key: old-key"), 401);
  EXPECT_EQ(status_of(daemon, "/v1/authorize", "X-Key: new-key"), 200);
}

TEST(Rotation, so_does_what_a_key_has_signed) {
  // {"sub":"u"}, HS256 by each secret.
  constexpr std::string_view old_token =
      "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1In0.1j1JQHS-25YzwCSd1k_bW6N9dD-9L9_Ue1jktNf8mtQ";
  constexpr std::string_view new_token =
      "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1In0.zzaVqtJT7t4jLgl9A532ypmP8bQpTuf2xW8Hu9bI6S8";
  const TempFolder folder;
  const Rotation rotation(folder, "the first secret of all, 32 bytes");
  const Daemon daemon(folder.write("p.yaml", R"(
domain: edge
descriptors: [ { key: sub, rate_limit: { unit: day, requests_per_unit: 100 } } ]
requests:
  jwt: { algorithms: [HS256], secret_file: keys }
  rate_limits: [ { actions: [ { jwt_claim: { claim: sub } } ] } ]
)"));
  ASSERT_TRUE(daemon.ready());
  const auto ask_by = [&](std::string_view token) {
    return status_of(daemon, "/v1/authorize", "Authorization: Bearer " + std::string(token));
  };
  EXPECT_EQ(ask_by(old_token), 200);
  rotation.replace(daemon, "the second secret of them, 32 bytes", "a file has changed and was read again");
  rotation.replace(daemon, "", "a file has changed and cannot be read; what it held before stays in force");
  EXPECT_EQ(ask_by(old_token), 401);
  EXPECT_EQ(ask_by(new_token), 200);
}

std::string slow_request(std::string_view key) {
  return "GET /v1/authorize HTTP/1.1\r\nHost: x\r\nX-Slow: " + std::string(key) + "\r\n\r\n";
}

std::string slow_alone(const std::string& period) {
  return R"(
domain: edge
descriptors:
  - key: slow
    rate_limit: { name: Slow, algorithm: leaky_bucket, requests_per_unit: 50, queue: 100, delay: hold, period: )" +
         period + R"( }
requests:
  rate_limits: [ { actions: [ { request_headers: { header_name: x-slow, descriptor_key: slow } } ] } ]
)";
}

TEST(Hold, answers_never_leave_faster_than_the_rate) {
  const TempFolder folder;
  const Daemon daemon(folder.write("p.yaml", slow_alone("10s")));
  ASSERT_TRUE(daemon.ready());
  HttpClient client(daemon.http());
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 4; ++i) client.send(slow_request("a"));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(client.receive().status, 200);
  // One each 200 ms, the first at once.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 600ms);
}

TEST(Hold, a_client_that_leaves_ends_its_wait) {
  const TempFolder folder;
  const Daemon daemon(folder.write("p.yaml", slow_alone("1000s")), {"--http.max_hold", "1h"});
  ASSERT_TRUE(daemon.ready());
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 60; ++i) {
    clients.push_back(std::make_unique<HttpClient>(daemon.http()));
    clients.back()->send(slow_request("b"));
    if (i == 0) {
      EXPECT_EQ(clients.front()->receive().status, 200);
    }
  }
  clients.clear();
  // They would be held for 20 s and more, most of them beyond the test's patience. What is open is the one that asks.
  const auto open = [&] {
    const std::string metrics = HttpClient(daemon.admin()).get("/metrics").body;
    const auto value = [&](const std::string& name) {
      const std::size_t at = metrics.find("\n" + name + " ");
      EXPECT_NE(at, std::string::npos) << metrics;
      return at == std::string::npos ? 1'000'000 : std::stol(metrics.substr(at + name.size() + 2));
    };
    return value("sluice_connections_opened_total") - value("sluice_connections_closed_total");
  };
  const auto end = std::chrono::steady_clock::now() + sluice::test::kPatience;
  long left = open();
  while (left > 2 && std::chrono::steady_clock::now() < end) left = open();
  EXPECT_LE(left, 2);
}

}  // namespace
