#include "load/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace sluice::load {
namespace {

using ::testing::HasSubstr;

std::string value(Traffic& traffic) { return traffic.next()[0][0].second; }

TEST(Traffic, ConstantSequenceAndText) {
  auto traffic = *Traffic::parse({R"(a=x\,y,b=n-{seq:3}!)", "c={{1}"}, 1);
  for (const char* expected : {"n-0!", "n-1!", "n-2!", "n-0!"}) {
    const Descriptors& request = traffic.next();
    EXPECT_EQ(request[0][0], (std::pair<std::string, std::string>("a", "x,y")));
    EXPECT_EQ(request[0][1].second, expected);
    EXPECT_EQ(request[1][0].second, "{1}");
  }
}

TEST(Traffic, TheSameSeedGivesTheSameRequests) {
  auto one = *Traffic::parse({"u={uniform:1000}"}, 5);
  auto same = *Traffic::parse({"u={uniform:1000}"}, 5);
  auto other = *Traffic::parse({"u={uniform:1000}"}, 6);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const std::string from_one = value(one);
    EXPECT_EQ(value(same), from_one);
    differs |= value(other) != from_one;
  }
  EXPECT_TRUE(differs);
}

TEST(Traffic, NewValuesNeverComeTwice) {
  auto one = *Traffic::parse({"u={new}"}, 1);
  auto other = *Traffic::parse({"u={new}"}, 1);
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(seen.insert(value(one)).second);
    EXPECT_TRUE(seen.insert(value(other)).second);
  }
}

// The shares of the first ranks are those of the distribution, within five standard deviations.
TEST(Traffic, ZipfHasItsShares) {
  for (const double exponent : {0.0, 0.5, 1.0, 1.1, 2.0}) {
    std::mt19937_64 random(3);
    Zipf zipf(exponent, 1000);
    constexpr int draws = 200'000;
    std::map<std::uint64_t, int> seen;
    for (int i = 0; i < draws; ++i) ++seen[zipf(random)];
    double sum = 0;
    for (int rank = 1; rank <= 1000; ++rank) sum += std::pow(rank, -exponent);
    for (const int rank : {1, 2, 3, 10, 100, 1000}) {
      const double share = std::pow(rank, -exponent) / sum;
      const double spread = std::sqrt(draws * share * (1 - share));
      EXPECT_NEAR(seen[static_cast<std::uint64_t>(rank)], draws * share, 5 * spread + 1) << exponent << ' ' << rank;
    }
    EXPECT_GE(seen.begin()->first, 1U);
    EXPECT_LE(seen.rbegin()->first, 1000U);
  }
  std::mt19937_64 random(3);
  EXPECT_EQ(Zipf(1.1, 1)(random), 1U);
}

TEST(Traffic, MistakesAreTold) {
  for (const auto& [text, told] : std::map<std::string, std::string>{{"user", "expected key=value"},
                                                                     {"=x", "expected key=value"},
                                                                     {"u={seq:0}", "from 1 to"},
                                                                     {"u={seq:1", "not closed"},
                                                                     {"u={zipf:1000}", "{zipf:EXPONENT:N}"},
                                                                     {"u={zipf:11:5}", "exponent"},
                                                                     {"u={other:5}", "found '{other:5}'"},
                                                                     {"u={seq:5}{seq:5}", "one placeholder"}}) {
    const auto traffic = Traffic::parse({text}, 1);
    ASSERT_FALSE(traffic) << text;
    EXPECT_THAT(traffic.error().message, HasSubstr(told)) << text;
  }
}

}  // namespace
}  // namespace sluice::load
