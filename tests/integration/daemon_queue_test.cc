// The daemon with requests that wait: over HTTP, in a queue of its own memory and in one whose broker is away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
namespace http = boost::beast::http;
using Tcp = boost::asio::ip::tcp;
using ::testing::HasSubstr;

/// Where deliveries go: answers 200 to each and keeps it. One connection at a time.
class Upstream {
 public:
  Upstream() : acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}), thread_([this] { serve(); }) {}
  ~Upstream() {
    stopping_ = true;
    Tcp::socket last(io_);
    last.connect(acceptor_.local_endpoint());
    last.close();
    thread_.join();
  }
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) + "/base";
  }
  std::vector<http::request<http::string_body>> received() {
    const std::scoped_lock lock(mutex_);
    return received_;
  }

 private:
  void serve() {
    while (!stopping_) {
      Tcp::socket socket(io_);
      acceptor_.accept(socket);
      boost::beast::flat_buffer buffer;
      boost::system::error_code error;
      http::request<http::string_body> request;
      http::read(socket, buffer, request, error);
      if (error) continue;
      http::response<http::string_body> answer{http::status::ok, 11};
      answer.keep_alive(false);
      answer.prepare_payload();
      http::write(socket, answer, error);
      const std::scoped_lock lock(mutex_);
      received_.push_back(request);
    }
  }

  boost::asio::io_context io_;
  Tcp::acceptor acceptor_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<http::request<http::string_body>> received_;
  std::thread thread_;
};

// A busy machine may have its next token before the next request.
HttpAnswer admit_until_it_waits(HttpClient& client, std::string_view request) {
  HttpAnswer answer;
  for (int i = 0; i < 1'000 && (i == 0 || answer.status == 200); ++i) answer = client.post("/v1/admit", request);
  return answer;
}

std::string policy_for(const std::string& queue) {
  return "domain: shop\ndescriptors:\n  - key: to\n    rate_limit: {period: 500ms, requests_per_unit: 1, algorithm: "
         "token_bucket, burst: 1, overflow: {queue: " +
         queue + "}}\n  - key: plain\n    rate_limit: {unit: hour, requests_per_unit: 1}\n";
}

constexpr const char* kRequest =
    R"({"domain":"shop","descriptors":[{"to":"orders"}],"key":"k","path":"/a","headers":{"Cookie":"c","X-A":"1"},"body":"hello"})";

TEST(DaemonQueue, LetsARequestWaitAndDeliversIt) {
  Upstream upstream;
  const TempFolder folder;
  const std::string config =
      folder.write("s.yaml", "queues: {orders: {type: memory, deliver: \"" + upstream.url() + "\"}}\n");
  Daemon daemon(folder.write("p.yaml", policy_for("orders")), {"--config", config});
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  HttpClient client(daemon.http());
  EXPECT_EQ(client.post("/v1/admit", kRequest).status, 200);
  const HttpAnswer waits = admit_until_it_waits(client, kRequest);
  ASSERT_EQ(waits.status, 202) << waits.body;
  const std::string location = waits.fields.at("location");
  EXPECT_THAT(waits.body, HasSubstr("\"place\":1"));
  const auto end = std::chrono::steady_clock::now() + kPatience;
  HttpAnswer ticket;
  do {
    ticket = client.get(location);
    ASSERT_EQ(ticket.status, 200);
    std::this_thread::sleep_for(20ms);
  } while (ticket.body.find("\"state\":\"done\"") == std::string::npos && std::chrono::steady_clock::now() < end);
  EXPECT_THAT(ticket.body, HasSubstr("\"state\":\"done\""));
  EXPECT_THAT(ticket.body, HasSubstr("\"status\":200"));
  const auto received = upstream.received();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].target(), "/base/a");
  EXPECT_EQ(received[0].body(), "hello");
  EXPECT_EQ("/v1/tickets/" + std::string(received[0]["Idempotency-Key"]), location);
  EXPECT_EQ(received[0]["X-A"], "1");
  EXPECT_EQ(received[0].count("Cookie"), 0U);
  client.send("DELETE " + location + " HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.receive().status, 409) << "it is too late";
  EXPECT_EQ(client.get("/v1/tickets/00000000000000000000000000000000").status, 404);
  EXPECT_EQ(client.get("/v1/tickets/x").status, 404);
  EXPECT_THAT(client.get("/metrics").body, HasSubstr("sluice_queue_stored_total{queue=\"orders\"} 1"));
  EXPECT_THAT(client.get("/v1/queues").body, HasSubstr(R"({"queue":"orders","type":"memory","ready":true)"));
}

TEST(DaemonQueue, RefusesWhatIsWrongAndWhatMayNotWait) {
  const TempFolder folder;
  const std::string config =
      folder.write("s.yaml", "queues: {orders: {type: memory, deliver: \"http://127.0.0.1:1\"}}\n");
  Daemon daemon(folder.write("p.yaml", policy_for("orders")), {"--config", config});
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  HttpClient client(daemon.http());
  const auto answer = [&](const std::string& members) {
    return client.post("/v1/admit", R"({"domain":"shop","descriptors":[{"to":"x"}])" + members + "}").body;
  };
  EXPECT_THAT(answer(R"(,"pth":"/")"), HasSubstr("a request has domain, descriptors, cost, key, method"));
  EXPECT_THAT(answer(R"(,"path":"a")"), HasSubstr("path: must begin with /"));
  EXPECT_THAT(answer(R"(,"headers":{"A B":"c"})"), HasSubstr("headers: the name of a header is wrong"));
  EXPECT_THAT(answer(R"(,"headers":{"A":"b\u0001"})"), HasSubstr("must hold no control characters"));
  EXPECT_THAT(answer(R"(,"headers":{"A":"b\r\nC: d"})"), HasSubstr("must hold no control characters"));
  EXPECT_THAT(answer(R"(,"body":"a","body_base64":"YQ==")"), HasSubstr("give one of body"));
  EXPECT_THAT(answer(R"(,"body_base64":"Y")"), HasSubstr("must be base64"));
  EXPECT_THAT(client.post("/v1/admit", "[]").body, HasSubstr("an array"));
  // A limit without overflow denies as ever.
  const std::string plain = R"({"domain":"shop","descriptors":[{"plain":"x"}]})";
  EXPECT_EQ(client.post("/v1/admit", plain).status, 200);
  const HttpAnswer denied = client.post("/v1/admit", plain);
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.fields.count("retry-after"), 1U);
  EXPECT_EQ(client.post("/v1/admit", std::string(70'000, 'a')).status, 413);
}

TEST(DaemonQueue, AnUnknownQueueIsAnErrorAtStart) {
  const TempFolder folder;
  const std::string config =
      folder.write("s.yaml", "queues: {orders: {type: memory, deliver: \"http://127.0.0.1:1\"}}\n");
  const Ended ended =
      run_sluice({"serve", "--config", config, "--policy", folder.write("p.yaml", policy_for("ordres"))});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr("there is no queue \"ordres\" in the server file; did you mean orders?"));
}

}  // namespace
}  // namespace sluice::test
