#include "policy/public_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace sluice::policy {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string shown(std::string message) {
  return public_text({.file = "shop.yaml", .line = 3, .column = 7, .message = std::move(message)});
}

TEST(PublicText, TellsTheReasonAndNotTheContent) {
  EXPECT_EQ(shown(R"(unknown key "hunter2" in a limit; did you mean `unit`?)"),
            R"(shop.yaml:3:7: error: unknown key "…" in a limit; did you mean `unit`?)");
  EXPECT_EQ(shown(R"(`unit` must be one of second, minute, found the quoted text "a \" b \\")"),
            R"(shop.yaml:3:7: error: `unit` must be one of second, minute, found the quoted text "…")");
  EXPECT_EQ(shown("`requests_per_unit` must be a whole number from 0 to 10, found 4711"),
            "shop.yaml:3:7: error: `requests_per_unit` must be a whole number from 0 to 10, found …");
  EXPECT_EQ(shown("`name` must be a text, found the number 4711; put it in quotes"),
            "shop.yaml:3:7: error: `name` must be a text, found the number …");
  EXPECT_EQ(shown("`period`: expected a duration such as 20ms, 1.5s or 1m30s, found 'it's'"),
            "shop.yaml:3:7: error: `period`: expected a duration such as 20ms, 1.5s or 1m30s, found …");
  EXPECT_EQ(shown("`period`: 'a' b' is longer than 292 years"), "shop.yaml:3:7: error: `period`: '…'");
  EXPECT_EQ(shown("not valid YAML: the referenced anchor is not defined: hunter2"),
            "shop.yaml:3:7: error: not valid YAML: …");
  EXPECT_EQ(shown("`descriptors` must be a list, found a map"),
            "shop.yaml:3:7: error: `descriptors` must be a list, found a map");
  EXPECT_EQ(shown("`stat_prefix` is Envoy's own and does nothing here"),
            "shop.yaml:3:7: error: `stat_prefix` is Envoy's own and does nothing here");
  EXPECT_EQ(shown("\"unclosed"), "shop.yaml:3:7: error: \"…\"");
  EXPECT_EQ(shown("\"unclosed\\"), "shop.yaml:3:7: error: \"…\"");
}

// Wherever it stands in a file that is wrong there.
TEST(PublicText, ASecretInAWrongFileIsNotTold) {
  constexpr std::string_view secret = "31415926535";
  constexpr std::array<std::string_view, 24> texts = {
      "@",
      "'@'",
      "- @",
      "password: @",
      "@: x",
      "domain: shop\n@: x\n",
      "domain: [@]\n",
      "domain: { @: 1 }\n",
      "domain: shop\ndescriptors: @\n",
      "domain: shop\ndescriptors: [@]\n",
      "domain: shop\ndescriptors: [{ key: user, @: 1 }]\n",
      "domain: shop\ndescriptors: [{ key: [@] }]\n",
      "domain: shop\ndescriptors: [{ key: user, value: @, rate_limit: { unit: @, requests_per_unit: 1 } }]\n",
      "domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: second, requests_per_unit: -@ } }]\n",
      "domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: second, requests_per_unit: 1.@ } }]\n",
      "domain: shop\ndescriptors: [{ key: user, rate_limit: { period: x@, requests_per_unit: 1 } }]\n",
      "domain: shop\ndescriptors: [{ key: user, rate_limit: { period: @0000000000000s, requests_per_unit: 1 } }]\n",
      "domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: second, requests_per_unit: 1, name: @ } }]\n",
      "domain: shop\ndescriptors: [{ key: user, rate_limit: { algorithm: a@, unit: second } }]\n",
      "domain: shop\ndescriptors: [{ key: '@', rate_limit: { unit: second } }, { key: '@' }, { key: '@' }]\n",
      "domain: shop\nrequests: { domain: shop, trusted_proxies: [ x@ ], rate_limits: [ { actions: [ @ ] } ] }\n",
      "domain: shop\nrequests: { rate_limits: [ { actions: [ { a@: {} } ], cost: x@ } ] }\n",
      "domain: *a@\n",
      "a: \"x\\q@\n",
  };
  for (const std::string_view text : texts) {
    std::string whole(text);
    for (std::size_t at = whole.find('@'); at != std::string::npos; at = whole.find('@', at)) {
      whole.replace(at, 1, secret);
    }
    const std::array<SourceText, 1> sources = {{{"shop.yaml", whole}}};
    for (const Finding& finding : load_texts(sources).findings) {
      EXPECT_THAT(public_text(finding), Not(HasSubstr(secret))) << finding.to_string();
      EXPECT_THAT(public_text(finding), HasSubstr("shop.yaml")) << finding.to_string();
    }
  }
}

}  // namespace
}  // namespace sluice::policy
