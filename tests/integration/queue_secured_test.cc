// Brokers over TLS, Kafka with a password beside it: who is not the broker, or not let in, is told so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <tuple>

#include "base/log.h"
#include "tests/integration/brokers/queue_fixture.h"

namespace sluice::queue {
namespace {

class QueueSecuredTest : public QueueTest {
 protected:
  /// Trusts `ca`, and expects the broker to be called `host`.
  void secure(const std::string& host, const std::string& ca, const std::string& password) {
    if (GetParam() == Kind::kafka) {
      settings_.brokers = servers().kafka->secured_address(host);
      settings_.properties = {{"security.protocol", "SASL_SSL"},
                              {"sasl.mechanisms", "PLAIN"},
                              {"sasl.username", testing::KafkaServer::kUser},
                              {"sasl.password", password},
                              {"ssl.ca.location", ca},
                              {"ssl.endpoint.identification.algorithm", "https"},
                              {"broker.address.family", "v4"}};
    } else {
      settings_.url = servers().rabbit->secured_url(host);
      settings_.ca = ca;
    }
  }
  static const testing::Certificates& certificates() {
    return GetParam() == Kind::kafka ? servers().kafka->certificates() : servers().rabbit->certificates();
  }
  static std::string right_password() { return testing::KafkaServer::kPassword; }

  /// The queue does not become ready, and says why: with these words of librabbitmq's or the server's; with these of
  /// librdkafka's in the log.
  void expect_refusal(const std::string& of_rabbit, const std::string& of_kafka) {
    log::configure(log::Level::info, log::Format::text);
    ::testing::internal::CaptureStderr();
    auto broker = make_broker(settings_);
    ASSERT_TRUE(broker);
    BrokerFigures figures;
    EXPECT_TRUE(in_time([&] {
      figures = (*broker)->figures();
      return figures.up || figures.problem != "not connected yet";
    }));
    EXPECT_FALSE(figures.up);
    EXPECT_THAT(figures.problem,
                ::testing::HasSubstr(GetParam() == Kind::kafka ? "topic " + topic_ + ": Local: " : of_rabbit));
    std::string told;
    EXPECT_TRUE(in_time([&] {
      told += ::testing::internal::GetCapturedStderr();
      ::testing::internal::CaptureStderr();
      return GetParam() != Kind::kafka || told.find(of_kafka) != std::string::npos;
    })) << told;
    std::ignore = ::testing::internal::GetCapturedStderr();
  }
};

TEST_P(QueueSecuredTest, TakesInAndDrains) {
  secure("localhost", certificates().ca(), right_password());
  open_desk();
  admit(200, 64);
  ASSERT_EQ(refused_, 0);
  DrainRunner runner(setup(*desk_->broker("orders"), desk_->tickets()));
  std::thread thread([&] { runner.run(); });
  EXPECT_TRUE(wait_received(200));
  runner.stop();
  thread.join();
  check_received(received_);
}

TEST_P(QueueSecuredTest, TrustsNobodyElse) {
  secure("localhost", certificates().cert(testing::Certificates::kStranger), right_password());
  expect_refusal("peer cert verification failed", "certificate verify failed");
}

TEST_P(QueueSecuredTest, WantsTheNameOfTheUrl) {
  secure("127.0.0.1", certificates().ca(), right_password());
  expect_refusal("hostname verification failed", "certificate verify failed");
}

TEST_P(QueueSecuredTest, IsNotReadyWithAWrongPassword) {
  secure("localhost", certificates().ca(), "wrong");
  if (GetParam() == Kind::rabbitmq) settings_.url.replace(settings_.url.find(":guest@"), 7, ":wrong@");
  expect_refusal("ACCESS_REFUSED", "Authentication failed");
}

INSTANTIATE_TEST_SUITE_P(Kafka, QueueSecuredTest, ::testing::Values(config::QueueSettings::Kind::kafka));
INSTANTIATE_TEST_SUITE_P(RabbitMQ, QueueSecuredTest, ::testing::Values(config::QueueSettings::Kind::rabbitmq));

}  // namespace
}  // namespace sluice::queue
