// sluice.v1.Limiter over a connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>

#include "tests/unit/front/token_file.h"
#include "tests/unit/front/verb_table.h"
#include "tests/unit/front_grpc/grpc_peer.h"

namespace sluice::front::grpc {
namespace {

using protozero::pbf_reader;
using protozero::pbf_writer;
using testing::HasSubstr;
using testing_support::framed;
using testing_support::Peer;
using testing_support::request_for;
using testing_support::Response;

constexpr std::string_view kPolicy =
    "domain: shop\n"
    "leases: true\n"
    "descriptors:\n"
    "  - key: user\n"
    "    rate_limit: { name: Users, period: 366d, requests_per_unit: 1, algorithm: token_bucket, burst: 30 }\n"
    "  - key: export\n"
    "    rate_limit: { name: Exports, requests_per_unit: 1, algorithm: concurrency, ttl: 1h }\n";

struct Ask {
  std::string key = "user";
  std::string value = "42";
  // NOLINTBEGIN(readability-redundant-member-init): gcc warns of designated initializers that leave them out
  std::map<std::uint32_t, std::int64_t> numbers{};  // by field
  std::string hold{};
  std::optional<std::uint64_t> descriptor_cost{};
  // NOLINTEND(readability-redundant-member-init)
};

std::string message_of(const Ask& ask) {
  std::string out;
  pbf_writer writer(out);
  if (ask.hold.empty()) {
    writer.add_string(1, std::string("shop"));
    pbf_writer descriptor(writer, 2);
    {
      pbf_writer entry(descriptor, 1);
      entry.add_string(1, ask.key);
      entry.add_string(2, ask.value);
    }
    if (ask.descriptor_cost) descriptor.add_uint64(2, *ask.descriptor_cost);
  }
  for (const auto& [field, number] : ask.numbers) writer.add_int64(field, number);
  if (!ask.hold.empty()) writer.add_string(8, ask.hold);
  return framed(out);
}

const Response& call(Peer& peer, const std::string& method, const Ask& ask) {
  return peer.exchange("/sluice.v1.Limiter/" + method, message_of(ask));
}

// The fields of a message: numbers as text, texts as they are; the last of each number.
std::map<std::uint32_t, std::string> fields_of(std::string_view message) {
  std::map<std::uint32_t, std::string> fields;
  pbf_reader reader(message.data(), message.size());
  while (reader.next()) {
    const std::uint32_t field = reader.tag();  // reading the value forgets it
    if (reader.wire_type() == protozero::pbf_wire_type::varint) {
      fields[field] = std::to_string(reader.get_int64());
    } else {
      fields[field] = reader.get_string();
    }
  }
  return fields;
}

std::map<std::uint32_t, std::string> answer_of(const Response& response) {
  EXPECT_EQ(response.status(), 0) << response.message();
  return fields_of(std::string_view(response.body).substr(5));
}

TEST(GrpcLimiter, ChecksAndExplains) {
  Peer peer(kPolicy);
  auto answer = answer_of(call(peer, "Check", {.numbers = {{3, 5}, {9, 1}}}));
  const auto decision = fields_of(answer.at(1));
  EXPECT_EQ(decision.at(1), "1");
  EXPECT_EQ(decision.at(2), "within_limit");
  EXPECT_EQ(decision.at(3), "Users");
  EXPECT_EQ(decision.at(4), "memory");
  EXPECT_EQ(decision.at(5), "30");
  EXPECT_EQ(decision.at(6), "25");
  const auto explained = fields_of(fields_of(answer.at(2)).at(10));
  EXPECT_EQ(explained.at(1), "enforce");
  EXPECT_EQ(explained.at(3), "42");
  EXPECT_EQ(explained.at(4), "5");
  EXPECT_EQ(explained.at(5), "token_bucket");
  EXPECT_EQ(explained.at(9), "1");

  answer = answer_of(call(peer, "Check", {.numbers = {{3, 26}}}));
  EXPECT_EQ(fields_of(answer.at(1)).count(1), 0U);
  EXPECT_EQ(fields_of(answer.at(1)).at(2), "over_limit");
  EXPECT_NE(fields_of(answer.at(1)).at(7), "0");
  answer = answer_of(call(peer, "Peek", {.numbers = {{3, 25}}}));
  EXPECT_EQ(fields_of(answer.at(1)).at(1), "1");
  answer = answer_of(call(peer, "Check", {.key = "other"}));
  EXPECT_EQ(fields_of(answer.at(1)).at(2), "no_limit");
}

TEST(GrpcLimiter, VerbsChangeCounters) {
  Peer peer(kPolicy);
  const auto remaining = [&] { return fields_of(answer_of(call(peer, "Peek", {.numbers = {{3, 0}}})).at(1)).at(6); };
  answer_of(call(peer, "Check", {.numbers = {{3, 20}}}));
  auto answer = answer_of(call(peer, "Refund", {.numbers = {{3, 5}}}));
  EXPECT_EQ(answer.at(1), "done");
  EXPECT_EQ(fields_of(answer.at(2)).at(5), "15");
  EXPECT_EQ(answer_of(call(peer, "Settle", {.numbers = {{4, 5}, {5, 8}}})).at(1), "done");
  EXPECT_EQ(remaining(), "12");
  EXPECT_EQ(answer_of(call(peer, "Penalize", {.numbers = {{3, 2}}})).at(1), "done");
  EXPECT_EQ(remaining(), "10");
  EXPECT_EQ(answer_of(call(peer, "Reset", {})).at(1), "done");
  EXPECT_EQ(remaining(), "30");
  EXPECT_EQ(answer_of(call(peer, "Ban", {.numbers = {{7, 1'000'000'000}}})).at(1), "done");
  EXPECT_EQ(answer_of(call(peer, "Reset", {.key = "other"})).at(1), "no_limit");
}

TEST(GrpcLimiter, AWrongCostIsCalledByItsName) {
  Peer peer(kPolicy);
  const Response& response = call(peer, "Check", {.numbers = {{3, INT64_MAX}}});
  EXPECT_EQ(response.status(), 3);
  EXPECT_EQ(response.message(), "cost is out of range, expected 0 to 1000000000000000");
}

// Calls that change counters otherwise than by a decision.
TEST(GrpcLimiter, OnlyWhatChargesByDescriptorTakesTheirCosts) {
  for (const std::uint64_t cost : {0U, 1U, 5U}) {
    Peer peer(kPolicy);
    for (const std::string method : {"Reserve", "Settle", "Reset", "Ban"}) {
      const Response& refused = call(peer, method, {.descriptor_cost = cost});
      EXPECT_EQ(refused.status(), 3) << method;
      EXPECT_THAT(refused.message(), HasSubstr("a descriptor has no cost here")) << method;
    }
    for (const std::string method : {"Check", "Peek", "Acquire", "Refund", "Penalize"}) {
      EXPECT_EQ(call(peer, method, {.descriptor_cost = cost}).status(), 0) << method;
    }
  }
}

TEST(GrpcLimiter, WhatChangesCountersAsksForAToken) {
  constexpr int invalid_argument = 3;
  constexpr int unauthenticated = 16;
  const TokenFile tokens;
  GrpcOptions options;
  options.guard = tokens.guard();
  Peer peer(kPolicy, options);
  const auto say = [&](const std::string& method, const std::string& authorization, const Ask& ask) -> const Response& {
    return peer.exchange("/sluice.v1.Limiter/" + method, message_of(ask), {{"authorization", authorization}});
  };
  const std::string lease = answer_of(call(peer, "Acquire", {.key = "export"})).at(3);
  const std::string held = answer_of(call(peer, "Reserve", {.numbers = {{3, 2}}})).at(3);
  const std::map<std::string, Ask> changes = {{"Refund", {.numbers = {{3, 1}}}},
                                              {"Settle", {.numbers = {{4, 1}, {5, 1}}}},
                                              {"Penalize", {.numbers = {{3, 1}}}},
                                              {"Reset", {}},
                                              {"Ban", {.numbers = {{7, 1'000'000'000}}}},
                                              {"Release", {.hold = lease}},
                                              {"Commit", {.numbers = {{5, 1}}, .hold = held}},
                                              {"Cancel", {.hold = held}}};
  for (const auto& [method, ask] : changes) {
    const Response& none = call(peer, method, ask);
    EXPECT_EQ(none.status(), unauthenticated) << method;
    EXPECT_THAT(none.message(), HasSubstr("asks for a token (metadata `authorization: Bearer TOKEN`)"));
    for (const char* wrong : {"Bearer let-me-i", "Bearer ops", "Bearer\tlet-me-in", "Bearerlet-me-in",
                              "Basic let-me-in", "let-me-in", ""}) {
      EXPECT_EQ(say(method, wrong, ask).status(), unauthenticated) << method << ' ' << wrong;
    }
    EXPECT_THAT(say(method, "Bearer let-me-i", ask).message(), HasSubstr("is not known here"));
  }
  // Nothing was done; decisions and looks are everybody's.
  EXPECT_EQ(fields_of(answer_of(call(peer, "Peek", {.numbers = {{3, 0}}})).at(1)).at(6), "28");
  EXPECT_EQ(peer.ask("43").status(), 0);
  EXPECT_EQ(answer_of(call(peer, "Check", {})).count(1), 1U);
  EXPECT_EQ(peer.exchange(Peer::kHealthCheck, framed("")).status(), 0);

  // Whoever reads the last of several would let in another one than whoever reads the first.
  for (const char* other : {"Bearer let-me-in", "Bearer let-me-i", "Basic x", ""}) {
    for (const bool first : {true, false}) {
      const char* const good = "Bearer let-me-in";
      const Response& response =
          peer.exchange("/sluice.v1.Limiter/Reset", message_of({}),
                        {{"authorization", first ? good : other}, {"authorization", first ? other : good}});
      EXPECT_EQ(response.status(), invalid_argument) << other;
      EXPECT_THAT(response.message(), HasSubstr("more than one `authorization`"));
    }
    // Of what asks for no token, too, so that all who read it see the same.
    for (const char* method : {"Check", "Peek", "Acquire", "Reserve"}) {
      const Response& response = peer.exchange("/sluice.v1.Limiter/" + std::string(method), message_of({}),
                                               {{"authorization", "Bearer let-me-in"}, {"authorization", other}});
      EXPECT_EQ(response.status(), invalid_argument) << method;
    }
  }

  for (const auto& [method, ask] : changes) EXPECT_EQ(say(method, "bearer let-me-in", ask).status(), 0) << method;
  tokens.write("ops another\n");
  peer.advance(2 * Peer::kSecond);
  EXPECT_EQ(say("Reset", "Bearer let-me-in", {}).status(), unauthenticated);
  EXPECT_EQ(say("Reset", "Bearer another", {}).status(), 0);
}

TEST(GrpcLimiter, ACertificateChangesCountersToo) {
  GrpcOptions options;
  options.guard.is_on = true;
  Peer peer(kPolicy, options);
  EXPECT_EQ(call(peer, "Reset", {}).status(), 16);
  Peer certified(kPolicy, options, true);
  EXPECT_EQ(call(certified, "Reset", {}).status(), 0);
}

TEST(GrpcLimiter, HoldsEndOnce) {
  Peer peer(kPolicy);
  const std::string lease = answer_of(call(peer, "Acquire", {.key = "export"})).at(3);
  EXPECT_EQ(answer_of(call(peer, "Acquire", {.key = "export"})).count(3), 0U);
  EXPECT_EQ(answer_of(call(peer, "Release", {.hold = lease})).at(1), "done");
  EXPECT_EQ(answer_of(call(peer, "Release", {.hold = lease})).at(1), "not_held");

  const std::string held = answer_of(call(peer, "Reserve", {.numbers = {{3, 20}}})).at(3);
  EXPECT_EQ(call(peer, "Release", {.hold = held}).status(), 3);
  const auto committed = answer_of(call(peer, "Commit", {.numbers = {{5, 4}}, .hold = held}));
  EXPECT_EQ(committed.at(1), "done");
  EXPECT_EQ(fields_of(committed.at(2)).at(5), "26");
  EXPECT_EQ(answer_of(call(peer, "Cancel", {.hold = held})).at(1), "not_held");
}

TEST(GrpcLimiter, EachVerbOnEachKindOfLimit) {
  constexpr int invalid_argument = 3;
  Peer peer(kVerbPolicy);
  for (const VerbRow& row : verb_table()) {
    SCOPED_TRACE(row.verb + " of " + row.limit);
    std::string method = row.verb;
    method.front() = static_cast<char>(method.front() - 'a' + 'A');
    Ask ask{.key = row.limit, .value = row.verb};
    if (row.verb == "settle") ask.numbers = {{4, 1}, {5, 2}};
    if (row.verb == "ban") ask.numbers = {{7, 3'600'000'000'000}};
    const Response& response = call(peer, method, ask);
    EXPECT_EQ(response.status(), row.refusal.empty() ? 0 : invalid_argument) << response.message();
    EXPECT_THAT(response.message(), HasSubstr(row.refusal));
  }
}

TEST(GrpcLimiter, RefusesWhatCannotBeAnswered) {
  Peer peer(kPolicy);
  EXPECT_EQ(call(peer, "Commit", {.hold = "nonsense"}).status(), 3);
  EXPECT_EQ(call(peer, "Reserve", {.numbers = {{7, -1}}}).status(), 3);
  EXPECT_EQ(call(peer, "Ban", {.numbers = {{7, INT64_MAX}}}).status(), 3);
  EXPECT_EQ(call(peer, "Other", {}).status(), 12);
  EXPECT_EQ(peer.exchange("/sluice.v1.Limiter/Check", framed("\x0a\xff")).status(), 3);
  EXPECT_EQ(peer.exchange("/sluice.v1.Limiter/Check", framed("")).status(), 3);
  // As over HTTP.
  const Response& empty = peer.exchange("/sluice.v1.Limiter/Check", framed(std::string("\x0a\x04shop\x12\x00", 8)));
  EXPECT_EQ(empty.status(), 3);
  EXPECT_EQ(empty.message(), "a descriptor needs at least one entry");
  const Response& odd = call(peer, "Check", {.value = "\xff\xfe"});
  EXPECT_EQ(odd.status(), 3);
  EXPECT_EQ(odd.message(), "descriptors: a key or a value is not valid UTF-8");
  // Envoy's service cannot give a lease back.
  const Response& envoy = peer.exchange(Peer::kShouldRateLimit, [] {
    std::string out;
    pbf_writer writer(out);
    writer.add_string(1, std::string("shop"));
    pbf_writer descriptor(writer, 2);
    pbf_writer entry(descriptor, 1);
    entry.add_string(1, std::string("export"));
    entry.add_string(2, std::string("acme"));
    entry.commit();
    descriptor.commit();
    return framed(out);
  }());
  EXPECT_EQ(envoy.status(), 3);
  EXPECT_THAT(envoy.message(), HasSubstr("concurrency"));
}

}  // namespace
}  // namespace sluice::front::grpc
