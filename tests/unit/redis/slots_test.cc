#include "store/redis/slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/redis/guide_driver.h"
#include "tests/unit/redis/redis_test_util.h"

namespace sluice::store::redis {
namespace {

using testing::bulk;
using testing::command;
using ::testing::ElementsAre;
using testing::GuideDriver;
using ::testing::IsEmpty;
using testing::kMs;

struct Range {
  int first;
  int last;
  std::vector<std::string> nodes;  // the master, then its replicas
};

std::string node(const std::string& host, int port) {
  return "*3\r\n" + (host == "null" ? "$-1\r\n" : bulk(host)) + ":" + std::to_string(port) + "\r\n" + bulk("id");
}

std::string slots(const std::vector<Range>& ranges) {
  std::string out = "*" + std::to_string(ranges.size()) + "\r\n";
  for (const Range& range : ranges) {
    out += "*" + std::to_string(2 + range.nodes.size()) + "\r\n:" + std::to_string(range.first) +
           "\r\n:" + std::to_string(range.last) + "\r\n";
    for (const std::string& one : range.nodes) out += one;
  }
  return out;
}

std::optional<SlotMap> parse(const std::string& bytes) {
  return SlotMap::parse(*testing::parse(bytes), {.host = "asked", .port = 1});
}

std::string owner_of(const SlotMap& map, std::size_t slot) {
  return map.owner[slot] == SlotMap::kNobody ? "nobody" : map.masters[map.owner[slot]].to_text();
}

TEST(SlotMap, MastersOfAllSlots) {
  const auto map = parse(slots({{0, 5460, {node("10.0.0.1", 6379), node("10.0.0.4", 6379)}},
                                {5461, 10922, {node("10.0.0.2", 6379), node("10.0.0.5", 6379)}},
                                {10923, 16383, {node("10.0.0.3", 6380)}}}));
  ASSERT_TRUE(map);
  EXPECT_EQ(owner_of(*map, 0), "10.0.0.1:6379");
  EXPECT_EQ(owner_of(*map, 5460), "10.0.0.1:6379");
  EXPECT_EQ(owner_of(*map, 5461), "10.0.0.2:6379");
  EXPECT_EQ(owner_of(*map, 16383), "10.0.0.3:6380");
  // Replicas are nobody's owners, so nothing is ever sent to one.
  EXPECT_EQ(map->masters.size(), 3U);
}

TEST(SlotMap, OneMasterOfManyRangesIsOne) {
  const auto map = parse(slots({{0, 0, {node("a", 1)}}, {2, 2, {node("b", 1)}}, {4, 9, {node("a", 1)}}}));
  ASSERT_TRUE(map);
  EXPECT_EQ(map->masters.size(), 2U);
  EXPECT_EQ(owner_of(*map, 9), "a:1");
}

TEST(SlotMap, Gaps) {
  const auto map = parse(slots({{1, 2, {node("a", 1)}}, {16383, 16383, {node("b", 2)}}}));
  ASSERT_TRUE(map);
  for (const std::size_t slot : {0U, 3U, 16382U}) EXPECT_EQ(owner_of(*map, slot), "nobody") << slot;
  EXPECT_EQ(owner_of(*map, 2), "a:1");
}

// A node that does not know its own host, or has none to announce, is the one that was asked.
TEST(SlotMap, HostsThatAreMissing) {
  const auto map = parse(slots({{0, 0, {node("null", 7)}}, {1, 1, {node("", 8)}}}));
  ASSERT_TRUE(map);
  EXPECT_EQ(owner_of(*map, 0), "asked:7");
  EXPECT_EQ(owner_of(*map, 1), "asked:8");
}

// A host that is not known to anybody, or a port that does not serve in this way, serves nothing.
TEST(SlotMap, HostsThatNobodyKnows) {
  const auto map = parse(slots({{0, 0, {node("?", 7)}}, {1, 1, {node("a", 0)}}, {2, 2, {node("b", 1)}}}));
  ASSERT_TRUE(map);
  EXPECT_EQ(owner_of(*map, 0), "nobody");
  EXPECT_EQ(owner_of(*map, 1), "nobody");
  EXPECT_EQ(map->masters.size(), 1U);
}

TEST(SlotMap, IPv6AndNames) {
  const auto map = parse(slots({{0, 0, {node("2001:db8::1", 7000)}}, {1, 1, {node("redis-1.example", 7001)}}}));
  ASSERT_TRUE(map);
  EXPECT_EQ(owner_of(*map, 0), "[2001:db8::1]:7000");
  EXPECT_EQ(owner_of(*map, 1), "redis-1.example:7001");
}

// As Redis 7 tells of a node: more beside its name.
TEST(SlotMap, MoreThanIsNeeded) {
  const auto map = parse("*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n" + bulk("a") + ":1\r\n" + bulk("id") + "*2\r\n" +
                         bulk("hostname") + bulk("h"));
  ASSERT_TRUE(map);
  EXPECT_EQ(owner_of(*map, 16383), "a:1");
}

TEST(SlotMap, OtherShapesAreNone) {
  const std::string good = node("a", 1);
  for (const std::string& bytes :
       {std::string("+OK\r\n"), std::string(":1\r\n"), std::string("*1\r\n:1\r\n"), std::string("*1\r\n*0\r\n"),
        std::string("*1\r\n*2\r\n:0\r\n:1\r\n"), std::string("*1\r\n*3\r\n:0\r\n:1\r\n+x\r\n"),
        std::string("*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n+x\r\n"), "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n" + bulk("a") + bulk("1"),
        "*1\r\n*3\r\n+0\r\n:1\r\n" + good, "*1\r\n*3\r\n:0\r\n+1\r\n" + good, slots({{-1, 1, {good}}}),
        slots({{2, 1, {good}}}), slots({{0, 16384, {good}}}), slots({{0, 0, {node("a", 65536)}}}),
        slots({{0, 0, {node("a", -1)}}}), slots({{0, 5, {good}}, {5, 9, {node("b", 1)}}}),
        slots({{0, 5, {good}}, {0, 5, {good}}})}) {
    EXPECT_FALSE(parse(bytes)) << bytes;
  }
}

// -- who asks for it --------------------------------------------------------------------------------------------------

class SlotsTest : public ::testing::Test, protected SlotsClient::Owner {
 protected:
  void map_loaded(SlotMap map) override {
    maps_.push_back(std::move(map));
    slots_.set_trouble(is_troubled_);
  }
  void no_map(std::string_view why) override { told_.emplace_back(why); }

  std::string connect() {
    const auto address = driver_.connect();
    return address ? address->to_text() : "";
  }
  int questions() {
    const std::string output = driver_.take_output();
    const std::string question = command({"CLUSTER", "SLOTS"});
    EXPECT_EQ(output.size() % question.size(), 0U) << output;
    return static_cast<int>(output.size() / question.size());
  }
  static std::string whole() {
    return slots({{0, 8000, {node("m0", 1), node("r0", 1)}}, {8001, 16383, {node("m1", 1)}}});
  }

  Login login_{{}, {}};
  SlotsClient slots_{{{.host = "seed0", .port = 1}, {.host = "seed1", .port = 1}}, login_, 0, *this};
  GuideDriver driver_{slots_};
  std::vector<SlotMap> maps_;
  std::vector<std::string> told_;
  bool is_troubled_ = false;
};

TEST_F(SlotsTest, AsksAnyNodeAndThenNowAndThen) {
  EXPECT_EQ(connect(), "seed0:1");
  EXPECT_EQ(questions(), 1);
  driver_.receive(whole());
  ASSERT_EQ(maps_.size(), 1U);
  EXPECT_GE(driver_.wait(), 24'000 * kMs);
  EXPECT_LE(driver_.wait(), 36'000 * kMs);
  driver_.advance(driver_.wait());
  EXPECT_EQ(questions(), 1);
  driver_.receive(whole());
  EXPECT_EQ(maps_.size(), 2U);
}

// When a call was sent elsewhere the map has changed; but an answer that is on its way may be older than that.
TEST_F(SlotsTest, ANewMapIsAskedForSoonButNotMoreThanOnceInTwentyMilliseconds) {
  connect();
  driver_.receive(whole());
  EXPECT_EQ(questions(), 1);
  for (int i = 0; i < 100; ++i) {
    slots_.refresh(driver_.now);
    driver_.pump();
  }
  EXPECT_EQ(questions(), 0);
  driver_.advance(20 * kMs);
  EXPECT_EQ(questions(), 1);
  slots_.refresh(driver_.now);
  driver_.receive(whole());
  EXPECT_EQ(questions(), 0);
  driver_.advance(20 * kMs);
  EXPECT_EQ(questions(), 1);
}

TEST_F(SlotsTest, WhatIsNoMapSendsItToTheNextNode) {
  EXPECT_EQ(connect(), "seed0:1");
  driver_.receive("-ERR This instance has cluster support disabled\r\n");
  EXPECT_EQ(connect(), "seed1:1");
  EXPECT_THAT(told_, IsEmpty());
  driver_.receive("*0\r\n");
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_EQ(told_[0], "seed0:1: ERR This instance has cluster support disabled: " + std::string(kIsNoCluster) +
                          "; seed1:1: it knows no master that has slots");
  driver_.advance(driver_.wait());
  EXPECT_EQ(connect(), "seed0:1");
  driver_.receive("*1\r\n:1\r\n");
  EXPECT_EQ(connect(), "seed1:1");
  driver_.receive("what\r\n");
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_EQ(told_[1], "seed0:1: an answer of unknown shape; seed1:1: " + std::string(strange_answer("what")));
  EXPECT_THAT(maps_, IsEmpty());
}

// Masters that the map names are asked when the node that told it is gone; replicas are not, but for seeds.
TEST_F(SlotsTest, AnotherNodeOfTheMapIsAskedWhenOneIsLost) {
  connect();
  driver_.receive(whole());
  driver_.lose();
  std::vector<std::string> asked;
  for (int i = 0; i < 4; ++i) {
    const auto address = driver_.fail_to_connect();
    ASSERT_TRUE(address);
    asked.push_back(address->to_text());
    driver_.pump();
  }
  EXPECT_THAT(asked, ElementsAre("m0:1", "m1:1", "seed1:1", "seed0:1"));
  EXPECT_THAT(told_, ElementsAre("m0:1: cannot be reached; m1:1: cannot be reached; seed1:1: cannot be reached; "
                                 "seed0:1: cannot be reached"));
}

TEST_F(SlotsTest, WhileSomethingIsWrongItAsksOftenAndOneNodeAfterTheOther) {
  is_troubled_ = true;
  EXPECT_EQ(connect(), "seed0:1");
  std::vector<std::string> asked;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(questions(), 1);
    driver_.advance(5 * kMs);
    driver_.receive(whole());
    const std::int64_t wait = driver_.wait();
    EXPECT_GE(wait, 40 * kMs);
    EXPECT_LE(wait, 60 * kMs);
    driver_.advance(wait);
    if (const std::string server = connect(); !server.empty()) asked.push_back(server);
  }
  EXPECT_EQ(asked.size(), 4U);
  is_troubled_ = false;
  driver_.receive(whole());
  EXPECT_GE(driver_.wait(), 24'000 * kMs);
}

// Where the map is long or the nodes are slow, they have more to do than to tell it.
TEST_F(SlotsTest, AsksLessOftenWhereTheAnswerTakesTime) {
  is_troubled_ = true;
  connect();
  driver_.advance(10 * kMs);
  driver_.receive(whole());
  EXPECT_GE(driver_.wait(), 80 * kMs);
  EXPECT_LE(driver_.wait(), 120 * kMs);
  driver_.advance(driver_.wait());
  driver_.advance(400 * kMs);
  driver_.receive(whole());
  EXPECT_GE(driver_.wait(), 160 * kMs);
  EXPECT_LE(driver_.wait(), 240 * kMs);
}

TEST_F(SlotsTest, AThousandMasters) {
  std::vector<Range> ranges;
  for (int i = 0; i < 1'024; ++i) ranges.push_back({16 * i, 16 * i + 15, {node("m", 1 + i)}});
  connect();
  driver_.receive(slots(ranges));
  ASSERT_EQ(maps_.size(), 1U);
  EXPECT_EQ(maps_[0].masters.size(), 1'024U);
  EXPECT_EQ(owner_of(maps_[0], 16383), "m:1024");
}

}  // namespace
}  // namespace sluice::store::redis
