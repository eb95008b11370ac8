// Every code that an error can have: provoked, and in the manual.
#include "front/http/error_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/front/verb_table.h"
#include "tests/unit/front_http/wire.h"

namespace sluice::http {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string text_of_file(const std::string& name) {
  std::ifstream in(SLUICE_SOURCE_DIR "/" + name);
  EXPECT_TRUE(in) << name;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

constexpr std::string_view kWithConcurrency = R"(
domain: shop
leases: true
descriptors:
  - key: export
    rate_limit: { requests_per_unit: 1, algorithm: concurrency, ttl: 1m }
)";

constexpr std::string_view kWithIdentity = R"(
domain: edge
descriptors:
  - key: user
    rate_limit: { unit: day, requests_per_unit: 1 }
requests:
  rate_limits:
    - actions: [ { request_headers: { header_name: x-user, descriptor_key: user, on_missing: deny } } ]
)";

// What a front can be brought to say without a queue, by its code: the status and how.
const std::map<std::string_view, std::pair<int, std::function<std::string(Wire&)>>>& provocations() {
  static const std::map<std::string_view, std::pair<int, std::function<std::string(Wire&)>>> all{
      {"bad_request", {400, [](Wire& wire) { return wire.talk("nonsense\r\n\r\n"); }}},
      {"invalid_json", {400, [](Wire& wire) { return wire.talk(post("/v1/check", "nope")); }}},
      {"invalid_request", {400, [](Wire& wire) { return wire.talk(post("/v1/check", "{}")); }}},
      {"length_required", {411, [](Wire& wire) { return wire.talk("POST /v1/check HTTP/1.1\r\nHost: t\r\n\r\n"); }}},
      {"method_not_allowed", {405, [](Wire& wire) { return wire.talk(get("/v1/check")); }}},
      {"no_policy",
       {503,
        [](Wire& wire) {
          wire.policies.set(nullptr);
          return wire.talk(post("/v1/check", check_body("user", "1")));
        }}},
      {"no_requests", {503, [](Wire& wire) { return wire.talk(get("/v1/authorize")); }}},
      {"no_such_ticket", {404, [](Wire& wire) { return wire.talk(get("/v1/tickets/x")); }}},
      {"not_found", {404, [](Wire& wire) { return wire.talk(get("/nowhere")); }}},
      {"request_timeout",
       {408,
        [](Wire& wire) {
          std::string said = wire.talk("GET / HTTP/1.1\r\n");
          wire.clock.advance(std::chrono::minutes(1));
          wire.connection().expire(wire.clock.now());
          return said + wire.take();
        }}},
      {"needs_lease",
       {400,
        [](Wire& wire) {
          wire.load(kWithConcurrency);
          return wire.talk(post("/v1/check", check_body("export", "1")));
        }}},
      {"not_enforced",
       {400,
        [](Wire& wire) {
          wire.load(front::kVerbPolicy);
          return wire.talk(post("/v1/ban", check_body("shadow", "1", R"(,"for":1)")));
        }}},
      {"store_unavailable",
       {503,
        [](Wire& wire) {
          wire.store.failure = store::Failure::unreachable;
          return wire.talk(post("/v1/peek", check_body("user", "1")));
        }}},
      {"unauthorized",
       {401,
        [](Wire& wire) {
          wire.load(kWithIdentity);
          return wire.talk(get("/v1/authorize"));
        }}},
  };
  return all;
}

// tests/integration/daemon_queue_test.cc and the tests of queues provoke these.
const std::set<std::string_view> kOfQueues{"queue_down",     "queue_full",   "queue_too_old",
                                           "queue_too_slow", "tickets_down", "too_late"};

TEST(ErrorCodes, each_is_said_when_it_should_be) {
  for (const std::string_view code : kErrorCodes) {
    const auto found = provocations().find(code);
    EXPECT_NE(found != provocations().end(), kOfQueues.contains(code)) << code;
    if (found == provocations().end()) continue;
    Wire wire;
    const Response response = parse_response(found->second.second(wire));
    EXPECT_EQ(response.status, found->second.first) << code;
    EXPECT_THAT(response.body, StartsWith(R"({"error":")" + std::string(code) + R"(","message":")")) << code;
  }
}

TEST(ErrorCodes, each_is_in_the_table_of_the_manual_and_no_other_is) {
  const std::string manual = text_of_file("docs/http-api.md");
  const std::size_t begin = manual.find("| status | `error` |");
  ASSERT_NE(begin, std::string::npos);
  const std::string table = manual.substr(begin, manual.find("\n\n", begin) - begin);
  std::set<std::string_view> told;
  const std::regex row(R"(\| [0-9][^|]*\| `([a-z_]+)` \|)");
  for (auto i = std::sregex_iterator(table.begin(), table.end(), row); i != std::sregex_iterator(); ++i) {
    const std::string code = (*i)[1];
    const auto* const known = std::ranges::find(kErrorCodes, code);
    ASSERT_NE(known, kErrorCodes.end()) << code;
    told.insert(*known);
  }
  for (const std::string_view code : kErrorCodes) EXPECT_TRUE(told.contains(code)) << code;
}

// The queues' own codes pass through the front.
TEST(ErrorCodes, those_of_queues_are_known) {
  const std::string source = text_of_file("src/queue/desk.cc");
  int count = 0;
  const std::regex refusal(R"(refuse\("([a-z_]+)\")");
  for (auto i = std::sregex_iterator(source.begin(), source.end(), refusal); i != std::sregex_iterator();
       ++i, ++count) {
    EXPECT_TRUE(kOfQueues.contains((*i)[1].str())) << (*i)[1];
  }
  EXPECT_GE(count, 4);
}

TEST(ErrorCodes, what_is_no_json_is_never_an_invalid_request) {
  for (const std::string& body :
       {std::string("nope"), std::string("{} x"), std::string(5'000, '['), std::string(), std::string("nul"),
        std::string(R"({"domain":1,})"), std::string("[1,2"), std::string("{\"a\":\"\xff\"}"), std::string("tru e")}) {
    for (const char* path : {"/v1/check", "/v1/peek", "/v1/refund", "/v1/settle", "/v1/reset", "/v1/admit", "/json"}) {
      Wire wire;
      const Response response = parse_response(wire.talk(post(path, body)));
      EXPECT_EQ(response.status, 400);
      EXPECT_THAT(response.body, StartsWith(R"({"error":"invalid_json","message":"line 1, column )")) << path << body;
    }
  }
  for (const std::string& body :
       std::vector<std::string>{"null", "1", "\"x\"", "[[]]", R"([{"a":[{"b":{}},null,true,-1.5e3]}])", " {} "}) {
    for (const char* path : {"/v1/check", "/v1/refund", "/json"}) {
      Wire wire;
      const Response response = parse_response(wire.talk(post(path, body)));
      EXPECT_THAT(response.body, testing::Not(HasSubstr("invalid_json"))) << path << body;
    }
  }
}

}  // namespace
}  // namespace sluice::http
