#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/policy.h"

namespace sluice::policy {
namespace {

Loaded load_limit(const std::string& overflow, std::optional<std::vector<std::string>> queues = {}) {
  LoadOptions options;
  options.queues = std::move(queues);
  const std::vector<SourceText> texts{
      {"p.yaml",
       "domain: shop\ndescriptors:\n  - key: user\n    rate_limit: {unit: second, requests_per_unit: 5, overflow: " +
           overflow + "}\n"}};
  return load_texts(texts, options);
}

std::string findings(const Loaded& loaded) {
  std::string text;
  for (const Finding& finding : loaded.findings) text += finding.to_string() + "\n";
  return text;
}

TEST(Overflow, IsKeptWithTheLimit) {
  const Loaded loaded = load_limit("{queue: orders, max_length: 7, max_age: 90s, answer: 202}", {{"orders"}});
  ASSERT_NE(loaded.policy, nullptr) << findings(loaded);
  ASSERT_EQ(loaded.policy->rules().size(), 1U);
  const auto& overflow = loaded.policy->rules()[0]->overflow;
  ASSERT_TRUE(overflow.has_value());
  EXPECT_EQ(overflow->queue, "orders");
  EXPECT_EQ(overflow->max_length, 7U);
  EXPECT_EQ(overflow->max_age, std::chrono::seconds(90));
}

TEST(Overflow, HasDefaults) {
  const Loaded loaded = load_limit("{queue: orders}");
  ASSERT_NE(loaded.policy, nullptr) << findings(loaded);
  EXPECT_EQ(loaded.policy->rules()[0]->overflow->max_length, 100'000U);
  EXPECT_EQ(loaded.policy->rules()[0]->overflow->max_age, std::chrono::minutes(10));
}

TEST(Overflow, NamesAnUnknownQueueWithItsPlaceAndWhatWasMeant) {
  EXPECT_EQ(findings(load_limit("{queue: ordres}", {{"orders", "mails"}})),
            "p.yaml:4:72: error: there is no queue \"ordres\" in the server file; did you mean orders?\n");
  EXPECT_EQ(findings(load_limit("{queue: x}", {{"orders", "mails"}})),
            "p.yaml:4:72: error: there is no queue \"x\" in the server file; known are orders, mails\n");
  EXPECT_EQ(findings(load_limit("{queue: orders}", std::vector<std::string>())),
            "p.yaml:4:72: error: there is no queue \"orders\" in the server file; the server file has no `queues:`\n");
}

TEST(Overflow, RefusesWhatIsWrong) {
  EXPECT_THAT(findings(load_limit("orders")), testing::HasSubstr("`overflow` must be a map with `queue`"));
  EXPECT_THAT(findings(load_limit("{max_length: 5}")), testing::HasSubstr("needs the name of a `queue`"));
  EXPECT_THAT(findings(load_limit("{queue: orders, max_length: 0}")), testing::HasSubstr("from 1 to 1000000000"));
  EXPECT_THAT(findings(load_limit("{queue: orders, max_age: 400d}")), testing::HasSubstr("from 1ms to 366d"));
  EXPECT_THAT(findings(load_limit("{queue: orders, max_age: soon}")), testing::HasSubstr("expected a duration"));
  EXPECT_THAT(findings(load_limit("{queue: orders, answer: 200}")), testing::HasSubstr("from 202 to 202"));
  EXPECT_THAT(findings(load_limit("{queue: orders, max_lenght: 5}")), testing::HasSubstr("did you mean `max_length`?"));
}

}  // namespace
}  // namespace sluice::policy
