#include "config/queue_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "config/resolve.h"

namespace sluice::config {
namespace {

Resolved read(const std::string& text) { return resolve(File{.name = "conf/s.yaml", .text = text}, {}, {}); }

std::string errors(const std::string& text) {
  std::string all;
  for (const std::string& error : read(text).errors) all += error + "\n";
  return all;
}

TEST(Queues, AreReadFromTheServerFile) {
  const Resolved resolved = read(R"(queues:
  orders:
    type: kafka
    brokers: [a:9092, b:9092]
    properties: {security.protocol: SSL, ssl.ca.location: /ca.pem}
    stored_headers: [Authorization]
    timeout: 2s
  mails: {type: rabbitmq, url: "amqp://u:secret@h/v", lanes: 4, ca: ca.pem}
  local: {type: memory, deliver: "http://127.0.0.1:9", max_length: 5}
)");
  ASSERT_THAT(resolved.errors, testing::IsEmpty());
  ASSERT_EQ(resolved.settings.queues.size(), 3U);
  const QueueSettings& orders = resolved.settings.queues[0];
  EXPECT_EQ(orders.kind, QueueSettings::Kind::kafka);
  EXPECT_EQ(orders.brokers, "a:9092,b:9092");
  EXPECT_EQ(orders.topic, "orders");
  EXPECT_EQ(orders.group, "sluice-orders");
  EXPECT_EQ(orders.dead_letter, "orders.dead");
  EXPECT_EQ(orders.properties.at("security.protocol"), "SSL");
  EXPECT_THAT(orders.stored_headers, testing::ElementsAre("authorization"));
  EXPECT_EQ(orders.timeout, std::chrono::seconds(2));
  const QueueSettings& mails = resolved.settings.queues[1];
  EXPECT_EQ(mails.lanes, 4U);
  EXPECT_EQ(mails.ca, "conf/ca.pem");
  EXPECT_EQ(to_text(mails), "mails (rabbitmq amqp://u:***@h/v, queue mails)");
  EXPECT_EQ(resolved.settings.queues[2].deliver, "http://127.0.0.1:9");
}

TEST(Queues, TellEachMistakeWithItsPlace) {
  EXPECT_EQ(
      errors("queues:\n  q: {type: kafak, brokers: x}\n"),
      "conf/s.yaml:2:13: queues.q.type: expected memory, kafka or rabbitmq, found 'kafak'; did you mean kafka?\n");
  EXPECT_EQ(errors("queues:\n  q: {brokers: x}\n"),
            "conf/s.yaml:2:6: queues.q.type: expected memory, kafka or rabbitmq, found none\n");
  EXPECT_EQ(errors("queues:\n  q: {type: kafka}\n"),
            "conf/s.yaml:2:6: queues.q: a queue of type kafka needs 'brokers', such as [127.0.0.1:9092]\n");
  EXPECT_EQ(errors("queues:\n  q: {type: kafka, broker: x}\n"),
            "conf/s.yaml:2:20: queues.q: unknown setting 'broker'; did you mean 'brokers'?\n");
  EXPECT_EQ(errors("queues:\n  q: {type: kafka, brokers: x, lanes: 2}\n"),
            "conf/s.yaml:2:32: queues.q.lanes: a queue of type kafka has no use for it; it belongs to rabbitmq\n");
  EXPECT_EQ(errors("queues:\n  q: {type: kafka, brokers: x, properties: {acks: 1}}\n"),
            "conf/s.yaml:2:45: queues.q.properties.acks: Sluice sets this one itself; remove it\n");
  EXPECT_EQ(errors("queues:\n  q: {type: rabbitmq, url: 'http://u:secret@h'}\n"),
            "conf/s.yaml:2:28: queues.q.url: expected amqp://… or amqps://…, found 'http://u:***@h'\n");
  EXPECT_EQ(errors("queues:\n  q: {type: rabbitmq, url: 'amqp://h', lanes: 65}\n"),
            "conf/s.yaml:2:47: queues.q.lanes: expected a whole number of 1 to 64, found '65'\n");
  EXPECT_EQ(errors("queues:\n  a b: {type: memory}\n"),
            "conf/s.yaml:2:3: queues: the name of a queue is 1 to 100 letters, digits, '_' and '-'\n");
  EXPECT_EQ(errors("queues: [x]\n"), "conf/s.yaml:1:9: queues: expected queues as 'name: {type: …}'\n");
  EXPECT_EQ(errors("queus: {}\n"), "conf/s.yaml:1:1: unknown setting 'queus'; did you mean 'queues'?\n");
}

}  // namespace
}  // namespace sluice::config
