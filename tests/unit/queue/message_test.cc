#include "queue/message.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "queue/stored_headers.h"

namespace sluice::queue {
namespace {

Message whole() {
  Message message;
  message.ticket = new_ticket();
  message.created_us = 1'700'000'000'000'000;
  message.expires_us = message.created_us + 5;
  message.domain = "shop";
  message.descriptors = {{.entries = {{"user", "42"}, {"path", "/a"}}, .cost = 3},
                         {.entries = {{"to", ""}}, .cost = std::nullopt}};
  message.cost = 7;
  message.key = "k";
  message.group = "g";
  message.method = "PUT";
  message.path = "/a?b=c";
  message.headers = {{"Content-Type", "text/plain"}, {"X-A", ""}};
  message.body = std::string("\0\xff body", 7);
  message.body_reference = "s3://b/o";
  message.reason = "r";
  message.attempts = 4;
  return message;
}

TEST(Message, ComesBackAsItWas) {
  const Message message = whole();
  Message read;
  std::string reason;
  EXPECT_EQ(decode(encode(message), read, reason), Decoded::message) << reason;
  EXPECT_EQ(read, message);
}

TEST(Message, OfAnotherProgramIsForeign) {
  Message read;
  std::string reason;
  for (const char* text : {"", "{}", "hello", "\x89SLQ"})
    EXPECT_EQ(decode(text, read, reason), Decoded::foreign) << text;
}

TEST(Message, CutAnywhereIsPoisonedOrForeignOrMisses) {
  const std::string bytes = encode(whole());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Message read;
    std::string reason;
    const Decoded decoded = decode(bytes.substr(0, size), read, reason);
    EXPECT_EQ(decoded == Decoded::poisoned, !reason.empty());
    // What is cut between fields is whole but for the last ones, which may be absent.
    EXPECT_EQ(decoded == Decoded::message, is_ticket(read.ticket) && !read.descriptors.empty() && reason.empty());
  }
}

TEST(Message, ThatCannotBeSentIsPoisoned) {
  const auto fault = [](void (*change)(Message&)) {
    Message message = whole();
    change(message);
    Message read;
    std::string reason;
    EXPECT_EQ(decode(encode(message), read, reason), Decoded::poisoned);
    return reason;
  };
  EXPECT_EQ(fault([](Message& m) { m.ticket = "no"; }), "it has no ticket");
  EXPECT_EQ(fault([](Message& m) { m.path = "a"; }), "it has no method or no path");
  EXPECT_EQ(fault([](Message& m) { m.path = "/ HTTP/1.1"; }), "its method or path cannot be sent");
  EXPECT_EQ(fault([](Message& m) { m.headers.emplace_back("A", "b\r\nC: d"); }), "one of its headers cannot be sent");
  EXPECT_EQ(fault([](Message& m) { m.descriptors.clear(); }), "it has no domain or no descriptors");
}

TEST(Message, OfALaterVersionIsToldSo) {
  std::string bytes = encode(whole());
  bytes[7] = 2;
  Message read;
  std::string reason;
  EXPECT_EQ(decode(bytes, read, reason), Decoded::poisoned);
  EXPECT_EQ(reason, "it is of a version that this one does not know");
}

TEST(Tickets, AreRandomAndHaveAForm) {
  const std::string one = new_ticket();
  EXPECT_TRUE(is_ticket(one)) << one;
  EXPECT_NE(one, new_ticket());
  EXPECT_FALSE(is_ticket("0123456789abcdef0123456789ABCDEF"));
  EXPECT_FALSE(is_ticket("0123"));
}

TEST(StoredHeaders, LeaveOutConnectionsAndSecrets) {
  Pairs headers = {{"Connection", "close, X-Hop"},
                   {"x-hop", "1"},
                   {"Transfer-Encoding", "chunked"},
                   {"AUTHORIZATION", "Basic x"},
                   {"Cookie", "a=b"},
                   {"Content-Type", "text/plain"},
                   {"Host", "h"},
                   {"Idempotency-Key", "x"},
                   {"Sluice-May-Be-Duplicate", "true"},
                   {"sLUICE-Attempt", "77"},
                   {"Sluice_Body_Reference", "s3://other"},
                   {"X-Api-Key", "k"}};
  Pairs kept = headers;
  drop_unstored(headers, {});
  EXPECT_EQ(headers, (Pairs{{"Content-Type", "text/plain"}}));
  const std::vector<std::string> listed{"authorization", "connection"};
  drop_unstored(kept, listed);
  EXPECT_EQ(kept, (Pairs{{"AUTHORIZATION", "Basic x"}, {"Content-Type", "text/plain"}}));
}

}  // namespace
}  // namespace sluice::queue
