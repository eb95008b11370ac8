// The library's queues: in memory, in real brokers, and in servers of the frameworks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/string_body.hpp>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/adapter/beast_queues.h"
#include "sluice/adapter/httplib_queues.h"
#include "sluice/http_queues.h"
#include "sluice/queues.h"
#include "tests/integration/brokers/queue_fixture.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using queue::in_time;
using ::testing::HasSubstr;

std::string shop_policy(const std::string& period) {
  return R"(
domain: shop
requests:
  rate_limits:
    - actions: [ { generic_key: { descriptor_key: to, descriptor_value: orders } } ]
descriptors:
  - key: to
    rate_limit:
      requests_per_unit: 1
      algorithm: token_bucket
      burst: 1
      overflow: {queue: orders, max_length: 3, max_age: 24h}
      period: )" +
         period + R"(
  - key: plain
    rate_limit: {unit: hour, requests_per_unit: 1}
)";
}

LimiterOptions options_with(const std::string& policy, const std::string& redis = {}) {
  LimiterOptions options;
  options.policy_text = policy;
  options.redis_url = redis;
  options.redis_timeout = 30s;
  return options;
}

LimiterRequest to(const std::string& what, const char* key = "to") {
  LimiterRequest request;
  request.domain = "shop";
  request.descriptors = {{{key, what}}};
  return request;
}

class QueuesTest : public ::testing::Test {
 protected:
  /// Until then no token comes back, however busy the machine is.
  void let_tokens_come() {
    folder_.write("p.yaml", shop_policy("10ms"));
    EXPECT_EQ(limiter_.reload(), "");
  }

  const test::TempFolder folder_;
  Limiter limiter_{LimiterOptions{.policy_paths = {folder_.write("p.yaml", shop_policy("1h"))}}};
  Queues queues_{limiter_, {.queues = "orders: {type: memory, stored_headers: [x-api-key]}"}};
};

TEST_F(QueuesTest, WhatIsBeyondTheLimitWaitsAndIsWorkedOff) {
  EXPECT_EQ(queues_.admit(to("a"), {}).kind, Admitted::Kind::allowed);
  const Admitted waits = queues_.admit(
      to("a"), {.key = "k", .headers = {{"Cookie", "c"}, {"X-Api-Key", "x"}, {"X-A", "1"}}, .body = "hello"});
  ASSERT_EQ(waits.kind, Admitted::Kind::waiting) << waits.message;
  EXPECT_EQ(waits.place, 1U);
  EXPECT_FALSE(waits.check.allowed);
  EXPECT_EQ(queues_.ticket(waits.ticket)->kind, TicketState::Kind::queued);
  std::mutex mutex;
  std::vector<QueuedDelivery> got;
  let_tokens_come();
  {
    QueueDrain drain(queues_, "orders",
                     [&](QueuedDelivery delivery, const QueueDrain::Done& done) {
                       // Answered by another thread; the first time in vain.
                       std::thread([&, delivery = std::move(delivery), done] {
                         {
                           const std::scoped_lock lock(mutex);
                           got.push_back(delivery);
                         }
                         done({.kind = delivery.attempt == 1 ? DeliveryEnd::Kind::retry : DeliveryEnd::Kind::delivered,
                               .status = 7});
                       }).detach();
                     },
                     {.first_pause = 1ms});
    EXPECT_TRUE(in_time([&] { return queues_.ticket(waits.ticket)->kind == TicketState::Kind::done; }));
    EXPECT_EQ(drain.counts().delivered, 1U);
    EXPECT_EQ(drain.counts().retries, 1U);
  }
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].ticket, waits.ticket);
  EXPECT_EQ(got[0].request.body, "hello");
  EXPECT_EQ(got[0].request.key, "k");
  using Headers = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(got[0].request.headers, (Headers{{"X-Api-Key", "x"}, {"X-A", "1"}}));
  EXPECT_FALSE(got[0].may_be_duplicate);
  EXPECT_EQ(got[1].attempt, 2U);
  EXPECT_TRUE(got[1].may_be_duplicate);
  EXPECT_EQ(queues_.ticket(waits.ticket)->status, 7);
  EXPECT_EQ(queues_.states()[0].stored, 1U);
}

TEST_F(QueuesTest, DeniesWhatMayOrCanNotWait) {
  EXPECT_EQ(queues_.admit(to("x", "plain"), {}).kind, Admitted::Kind::allowed);
  const Admitted denied = queues_.admit(to("x", "plain"), {});
  EXPECT_EQ(denied.kind, Admitted::Kind::denied);
  EXPECT_EQ(denied.problem, "");
  EXPECT_FALSE(denied.check.allowed);
  EXPECT_EQ(queues_.admit(to("a"), {}).kind, Admitted::Kind::allowed);
  EXPECT_EQ(queues_.admit(to("a"), {.path = "no slash"}).problem, "invalid_request");
  EXPECT_EQ(queues_.admit(to("a"), {.headers = {{"A", "b\r\nC: d"}}}).problem, "invalid_request");
  EXPECT_EQ(queues_.admit(to("a"), {.body = std::string(600'000, 'x')}).problem, "too_large");
  std::vector<std::string> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(queues_.admit(to("a"), {}).ticket);
  const Admitted full = queues_.admit(to("a"), {});
  EXPECT_EQ(full.kind, Admitted::Kind::denied);
  EXPECT_EQ(full.problem, "queue_full");
  EXPECT_GT(full.retry_after, 0s);
  EXPECT_TRUE(queues_.cancel(tickets[1]));
  EXPECT_EQ(queues_.ticket(tickets[1])->kind, TicketState::Kind::cancelled);
  EXPECT_FALSE(queues_.cancel("00000000000000000000000000000000"));
  EXPECT_EQ(queues_.ticket("nonsense"), std::nullopt);
}

TEST(Queues, TellAllThatIsWrong) {
  Limiter limiter(options_with(shop_policy("1h")));
  const auto problems = [&](const std::string& text) {
    try {
      const Queues queues(limiter, {.queues = text});
    } catch (const std::invalid_argument& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  EXPECT_THAT(problems(""), HasSubstr("there is none"));
  EXPECT_THAT(problems("orders: {type: memori}"), HasSubstr("did you mean memory?"));
  EXPECT_THAT(problems("other: {type: memory}"), HasSubstr("there is no queue orders"));
  EXPECT_THAT(problems("orders: {type: kafka, brokers: \"127.0.0.1:1\"}"), HasSubstr("through Redis"));
  EXPECT_THAT(problems("orders: ["), HasSubstr("queues:1:"));
  Queues queues(limiter, {.queues = "orders: {type: memory}"});
  EXPECT_THROW(QueueDrain(queues, "odrers", {}), std::invalid_argument);
  EXPECT_THROW(QueueDrain(queues, "orders", {}, {.in_flight = 0}), std::invalid_argument);
}

TEST_F(QueuesTest, ForAServerOfCppHttplib) {
  HttpQueues http(limiter_, queues_, {.key_header = "x-customer"});
  httplib::Server server;
  std::atomic<int> handled{0};
  server.Post("/orders", httplib_queued(http, [&](const httplib::Request&, httplib::Response& response) {
                ++handled;
                response.set_content("done", "text/plain");
              }));
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread thread([&] { server.listen_after_bind(); });
  httplib::Client client("127.0.0.1", port);
  const httplib::Headers headers{{"X-Customer", "7"}, {"Cookie", "secret"}};
  auto answer = client.Post("/orders", headers, "first", "text/plain");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "done");
  answer = client.Post("/orders", headers, "second", "text/plain");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 202) << answer->body;
  const std::string location = answer->get_header_value("Location");
  ASSERT_TRUE(location.starts_with("/v1/tickets/"));
  EXPECT_THAT(answer->body, HasSubstr("\"place\":1"));
  for (int i = 0; i < 2; ++i) (void)client.Post("/orders", headers, "more", "text/plain");
  answer = client.Post("/orders", headers, "too many", "text/plain");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 429);
  EXPECT_THAT(answer->body, HasSubstr("queue_full"));
  EXPECT_NE(answer->get_header_value("Retry-After"), "");
  EXPECT_EQ(handled, 1);
  server.stop();
  thread.join();
  let_tokens_come();
  std::mutex mutex;
  std::vector<QueuedDelivery> got;
  QueueDrain drain(queues_, "orders", [&](QueuedDelivery delivery, const QueueDrain::Done& done) {
    {
      const std::scoped_lock lock(mutex);
      got.push_back(std::move(delivery));
    }
    done({});
  });
  ASSERT_TRUE(in_time([&] {
    const std::scoped_lock lock(mutex);
    return got.size() == 3;
  }));
  drain.stop();
  EXPECT_EQ("/v1/tickets/" + got[0].ticket, location);
  EXPECT_EQ(got[0].request.key, "7");
  EXPECT_EQ(got[0].request.path, "/orders");
  EXPECT_EQ(got[0].request.body, "second");
  for (const auto& [name, value] : got[0].request.headers) EXPECT_NE(name, "Cookie");
}

TEST_F(QueuesTest, ForAServerOfBeast) {
  HttpQueues http(limiter_, queues_);
  boost::asio::io_context io;
  boost::asio::ip::tcp::socket stream(io);
  boost::beast::http::request<boost::beast::http::string_body> request{boost::beast::http::verb::post, "/orders", 11};
  request.body() = "body";
  std::vector<HttpAnswer> answers;
  const std::function<void()> ask = [&] {
    async_admit(http, stream, request, "192.0.2.7", [&](HttpAnswer answer) {
      answers.push_back(std::move(answer));
      if (answers.size() < 2) ask();
    });
  };
  ask();
  EXPECT_TRUE(answers.empty()) << "never within the call";
  io.run();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_TRUE(answers[0].allowed);
  EXPECT_EQ(answers[1].reason, HttpAnswer::Reason::waiting);
  const auto response = denied_response(answers[1], request);
  EXPECT_EQ(response.result_int(), 202U);
  EXPECT_TRUE(response["Location"].starts_with("/v1/tickets/"));
}

}  // namespace

namespace queue {
namespace {

/// In real brokers.
class QueuesInBrokersTest : public QueueTest {
 protected:
  [[nodiscard]] std::string queues_text() const {
    if (GetParam() == Kind::kafka) {
      return "orders: {type: kafka, brokers: \"" + settings_.brokers + "\", topic: " + settings_.topic +
             ", group: " + settings_.group + ", timeout: 30s}";
    }
    return "orders: {type: rabbitmq, url: \"" + settings_.url + "\", queue: " + settings_.queue +
           ", lanes: 2, timeout: 30s}";
  }
};

TEST_P(QueuesInBrokersTest, FromAdmissionToDelivery) {
  LimiterOptions options = options_with(policy_text(100), servers().redis.url());
  options.redis_prefix = prefix_;
  Limiter limiter(options);
  Queues queues(limiter, {.queues = queues_text()});
  ASSERT_TRUE(in_time([&] { return queues.states()[0].ready && queues.states()[0].length; }))
      << queues.states()[0].problem;
  std::mutex mutex;
  std::set<std::string> waiting;
  std::atomic<int> answered{0};
  constexpr int kCount = 200;
  for (int i = 0; i < kCount; ++i) {
    queues.start(to("orders"), {.key = "k" + std::to_string(i % 5), .body = std::to_string(i)}, [&](Admitted answer) {
      const std::scoped_lock lock(mutex);
      EXPECT_NE(answer.kind, Admitted::Kind::denied) << answer.message;
      if (answer.kind == Admitted::Kind::waiting) waiting.insert(answer.ticket);
      ++answered;
    });
  }
  ASSERT_TRUE(in_time([&] { return answered == kCount; }));
  ASSERT_FALSE(waiting.empty());
  std::set<std::string> delivered;
  QueueDrain drain(queues, "orders", [&](const QueuedDelivery& delivery, const QueueDrain::Done& done) {
    {
      const std::scoped_lock lock(mutex);
      delivered.insert(delivery.ticket);
    }
    done({.status = 200});
  });
  EXPECT_TRUE(in_time([&] {
    const std::scoped_lock lock(mutex);
    return delivered.size() == waiting.size();
  }));
  EXPECT_TRUE(in_time([&] {
    try {
      return queues.ticket(*waiting.begin())->kind == sluice::TicketState::Kind::done;
    } catch (const std::runtime_error&) {  // a busy store
      return false;
    }
  }));
  drain.stop();
  EXPECT_EQ(delivered, waiting);
  EXPECT_EQ(drain.counts().delivered, waiting.size());
  EXPECT_EQ(drain.counts().duplicates, 0U);
}

INSTANTIATE_TEST_SUITE_P(Kafka, QueuesInBrokersTest, ::testing::Values(config::QueueSettings::Kind::kafka));
INSTANTIATE_TEST_SUITE_P(RabbitMQ, QueuesInBrokersTest, ::testing::Values(config::QueueSettings::Kind::rabbitmq));

}  // namespace
}  // namespace queue
}  // namespace sluice
