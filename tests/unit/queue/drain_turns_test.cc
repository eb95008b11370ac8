// Whose turn it is.
#include "queue/drain_turns.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace sluice::queue {
namespace {

class DrainTurnsTest : public ::testing::Test {
 protected:
  DrainItemPtr put(const std::string& group, const std::string& body, bool is_ordered = true) {
    auto item = std::make_shared<DrainItem>();
    item->message.body = body;
    turns_.put(item, group, is_ordered);
    return item;
  }
  /// Stages all there is and tells that the tickets are theirs.
  void stage_all() {
    std::vector<DrainItemPtr> staged;
    while (const DrainItemPtr item = turns_.stage_next()) staged.push_back(item);
    for (const DrainItemPtr& item : staged) turns_.claimed(item);
  }
  /// Delivers until nothing can go.
  std::string deliver_all() {
    std::string order;
    while (turns_.head() != nullptr) {
      const DrainItemPtr item = turns_.take_head();
      order += item->message.body;
      turns_.release(*item);
    }
    return order;
  }

  DrainTurns turns_;
};

TEST_F(DrainTurnsTest, GroupsTakeTurnsAndKeepTheirOrder) {
  for (const char* body : {"1", "2", "3"}) put("a", body);
  for (const char* body : {"x", "y"}) put("b", body);
  stage_all();
  EXPECT_EQ(turns_.staged(), 5U);
  EXPECT_EQ(deliver_all(), "1x2y3");
  EXPECT_TRUE(turns_.is_empty());
  EXPECT_EQ(turns_.groups(), 0U) << "keys have no bound, so nothing is kept of those that are gone";
}

TEST_F(DrainTurnsTest, OneOfAnOrderedGroupIsOutAtATime) {
  put("a", "1");
  put("a", "2");
  stage_all();
  const DrainItemPtr first = turns_.take_head();
  EXPECT_EQ(turns_.head(), nullptr);
  EXPECT_EQ(turns_.staged(), 0U) << "what waits for the first keeps no other group's messages out";
  put("b", "x");
  stage_all();
  EXPECT_EQ(turns_.take_head()->message.body, "x");
  turns_.put_back(first);
  EXPECT_EQ(turns_.take_head(), first) << "it goes again before those behind it";
  turns_.free(*first);
  EXPECT_EQ(turns_.take_head()->message.body, "2");
}

TEST_F(DrainTurnsTest, ABusyGroupIsStagedNoFurtherThanItsNextTurns) {
  for (int i = 0; i < 10; ++i) put("a", std::to_string(i));
  turns_.claimed(turns_.stage_next());
  const DrainItemPtr first = turns_.take_head();
  std::size_t staged = 0;
  while (turns_.stage_next() != nullptr) ++staged;
  EXPECT_EQ(staged, 2U);
  turns_.free(*first);
  EXPECT_NE(turns_.stage_next(), nullptr);
}

TEST_F(DrainTurnsTest, ManyOfAGroupWithoutOrderAreOut) {
  for (const char* body : {"1", "2", "3"}) put("g", body, false);
  stage_all();
  const DrainItemPtr first = turns_.take_head();
  EXPECT_EQ(turns_.take_head()->message.body, "2");
  turns_.put_back(first);
  EXPECT_EQ(turns_.take_head(), first);
  EXPECT_EQ(turns_.take_head()->message.body, "3");
  EXPECT_EQ(turns_.staged_cost(), 0U);
}

TEST_F(DrainTurnsTest, NothingOvertakesOneWhoseTicketIsNotKnownYet) {
  put("a", "1");
  put("a", "2");
  const DrainItemPtr first = turns_.stage_next();
  const DrainItemPtr second = turns_.stage_next();
  turns_.claimed(second);
  EXPECT_EQ(turns_.head(), nullptr);
  turns_.claimed(first);
  EXPECT_EQ(turns_.head(), first);
}

TEST_F(DrainTurnsTest, WhatIsWithdrawnLetsTheNextGo) {
  put("a", "1");
  put("a", "2");
  const DrainItemPtr first = turns_.stage_next();
  turns_.claimed(turns_.stage_next());
  turns_.withdraw(first);
  turns_.release(*first);
  EXPECT_EQ(turns_.staged(), 1U);
  EXPECT_EQ(deliver_all(), "2");
  EXPECT_EQ(turns_.groups(), 0U);
}

}  // namespace
}  // namespace sluice::queue
