#include "cli/check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace sluice::cli {
namespace {

class StillClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return {1'700'000'000'000'000'000, 1'700'000'000'000'000'000}; }
};

struct Told {
  int code = 0;
  std::string out;
  std::string err;
};

Told run(const CheckOptions& options) {
  std::ostringstream out;
  std::ostringstream err;
  Told told;
  told.code = check(options, out, err, StillClock());
  told.out = out.str();
  told.err = err.str();
  return told;
}

std::string example(const std::string& name) { return std::string(SLUICE_SOURCE_DIR) + "/examples/policies/" + name; }

/// Options for the example of articles.
CheckOptions article(std::vector<std::string> descriptors) {
  CheckOptions options;
  options.policy = {example("article.yaml")};
  options.descriptors = std::move(descriptors);
  return options;
}

TEST(Check, TellsAnAllowedRequest) {
  const Told told = run(article({"user=42"}));
  EXPECT_EQ(told.code, 0);
  EXPECT_EQ(told.out, "allowed: ArticleCreate has 29 of 30 left; reset after 100ms\n");
  EXPECT_EQ(told.err, "");
}

TEST(Check, TellsADeniedRequest) {
  CheckOptions options = article({"user=42"});
  options.cost = 31;
  const Told told = run(options);
  EXPECT_EQ(told.code, 2);
  EXPECT_EQ(told.out, "denied: ArticleCreate has 30 of 30 left; the request never fits\n");
}

TEST(Check, TellsACostThatNeverFitsFromABucketThatNeverRefills) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("sluice_check_spent_" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(path)
      << "domain: d\ndescriptors:\n"
         "  - {key: a, rate_limit: {unit: second, requests_per_unit: 0, algorithm: token_bucket, burst: 2}}\n";
  CheckOptions options;
  options.policy = {path.string()};
  options.descriptors = {"a=1"};
  options.cost = 3;
  EXPECT_EQ(run(options).out, "denied: a has 2 of 2 left; the request never fits\n");
  options.cost = 2;
  options.repeat = 2;
  EXPECT_EQ(run(options).out, "allowed: a has 0 of 2 left\ndenied: a has 0 of 2 left; none comes back\n");
  options.json = true;
  const Told told = run(options);
  EXPECT_NE(told.out.find(R"({"allowed":false,"reason":"over_limit",)"), std::string::npos) << told.out;
  EXPECT_EQ(told.out.find("never_fits"), std::string::npos) << told.out;
  std::filesystem::remove(path);
}

TEST(Check, RepeatsAtOneInstant) {
  CheckOptions options = article({"user=42"});
  options.repeat = 31;
  const Told told = run(options);
  EXPECT_EQ(told.code, 2);
  std::istringstream lines(told.out);
  std::string line;
  for (int left = 29; left >= 0; --left) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_TRUE(line.starts_with("allowed: ArticleCreate has " + std::to_string(left) + " of 30 left")) << line;
  }
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, "denied: ArticleCreate has 0 of 30 left; retry after 100ms");
}

TEST(Check, AnswersInTheJsonOfTheHttpApi) {
  CheckOptions options = article({"user=42"});
  options.json = true;
  const Told told = run(options);
  EXPECT_EQ(told.code, 0);
  EXPECT_EQ(told.out,
            R"({"allowed":true,"reason":"within_limit","limit_name":"ArticleCreate","source":"memory","limit":30,)"
            R"("remaining":29,"reset_after":0.1,"descriptors":[{"allowed":true,"reason":"within_limit",)"
            R"("limit_name":"ArticleCreate","source":"memory","limit":30,"remaining":29,"reset_after":0.1}]})"
            "\n");
}

TEST(Check, TakesADescriptorAnArgument) {
  CheckOptions options;
  options.policy = {example("")};
  options.domain = "mongo_cps";
  options.descriptors = {"message_type=marketing,to_number=555", "database=x\\,y", "path=/healthcheck", "nothing="};
  const Told told = run(options);
  EXPECT_EQ(told.code, 0);
  EXPECT_NE(told.out.find(
                "\n  message_type=marketing,to_number=555: within the limit: message_type_marketing.to_number has 4 "
                "of 5 left; "),
            std::string::npos)
      << told.out;
  EXPECT_NE(told.out.find("\n  database=x\\,y: within the limit: database has 4999 of 5000 left; "), std::string::npos)
      << told.out;
  EXPECT_NE(told.out.find("\n  path=/healthcheck: within the limit: path_/healthcheck is unlimited\n"),
            std::string::npos)
      << told.out;
  EXPECT_NE(told.out.find("\n  nothing=: no limit matches\n"), std::string::npos) << told.out;
}

TEST(Check, SaysWhenNothingLimits) {
  const Told told = run(article({"client=42"}));
  EXPECT_EQ(told.code, 0);
  EXPECT_EQ(told.out, "allowed: no limit matches\n");
}

TEST(Check, TellsShadowFromEnforced) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("sluice_check_" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(path) << "domain: d\ndescriptors:\n"
                         "  - {key: a, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 0}}\n";
  CheckOptions options;
  options.policy = {path.string()};
  options.descriptors = {"a=1"};
  const Told told = run(options);
  std::filesystem::remove(path);
  EXPECT_EQ(told.code, 0);
  EXPECT_TRUE(told.out.starts_with("allowed: ")) << told.out;
}

TEST(Check, TellsWaitsForPeople) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("sluice_check_wait_" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(path) << "domain: d\ndescriptors:\n  - {key: a, rate_limit: {unit: day, requests_per_unit: 1}}\n";
  CheckOptions options;
  options.policy = {path.string()};
  options.descriptors = {"a=1"};
  options.repeat = 2;
  const Told told = run(options);
  std::filesystem::remove(path);
  // The clock stands at 22:13:20.
  EXPECT_EQ(told.out,
            "allowed: a has 0 of 1 left; reset after 1h 47m\ndenied: a has 0 of 1 left; retry after 1h 47m\n");
}

TEST(Check, ExplainsMistakes) {
  const auto error = [](const CheckOptions& options) {
    const Told told = run(options);
    EXPECT_EQ(told.code, 1);
    EXPECT_EQ(told.out, "");
    return told.err;
  };
  EXPECT_EQ(error(article({"user"})), "sluice check: expected key=value[,key=value…], found 'user'\n");
  EXPECT_EQ(error(article({"=42"})), "sluice check: expected key=value[,key=value…], found '=42'\n");
  EXPECT_EQ(error(article({"user=42,"})), "sluice check: expected key=value[,key=value…], found 'user=42,'\n");
  for (const std::string text : {R"(user=a\)", R"(user=a\n)", R"(us\=er=a)"}) {
    EXPECT_EQ(error(article({text})),
              "sluice check: a backslash stands before a comma or a backslash only, found '" + text + "'\n");
  }
  EXPECT_EQ(error(article({})), "sluice check: no descriptor: name what is asked for, such as user=42\n");
  CheckOptions options = article({"user=42"});
  options.domain = "shopp";
  EXPECT_EQ(error(options), "sluice check: the policy has no domain 'shopp'; did you mean 'shop'?\n");
  options = article({"user=42"});
  options.cost = 1'000'000'000'000'001;
  EXPECT_EQ(error(options), "sluice check: --cost must be from 0 to 1000000000000000\n");
  options = article({"user=42"});
  options.repeat = 0;
  EXPECT_EQ(error(options), "sluice check: --repeat must be from 1 to 1000000\n");
  options = article({"user=42"});
  options.policy = {"/nowhere.yaml"};
  EXPECT_EQ(error(options), "/nowhere.yaml: error: no such file or directory\n");
  options.policy = {example("")};
  EXPECT_EQ(error(options),
            "sluice check: the policy has several domains; name one with --domain: shop api mongo_cps\n");
}

}  // namespace
}  // namespace sluice::cli
