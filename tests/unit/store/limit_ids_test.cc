#include "store/limit_ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace sluice::store {
namespace {

TEST(LimitIds, EqualIdentitiesHaveEqualIdsAndOthersDiffer) {
  const std::uint32_t first = limit_id("ids.shop.user");
  EXPECT_NE(first, 0U);
  EXPECT_EQ(limit_id("ids.shop.user"), first);
  EXPECT_NE(limit_id("ids.shop.user2"), first);
  EXPECT_NE(limit_id(""), first);
}

TEST(LimitIds, AreDense) {
  const std::uint32_t before = limit_id_count();
  EXPECT_EQ(limit_id("ids.dense.a"), before + 1);
  EXPECT_EQ(limit_id("ids.dense.b"), before + 2);
  EXPECT_EQ(limit_id("ids.dense.a"), before + 1);
  EXPECT_EQ(limit_id_count(), before + 2);
}

TEST(LimitIds, ThreadsAgree) {
  constexpr int kThreads = 4;
  constexpr int kNames = 500;
  std::vector<std::vector<std::uint32_t>> seen(kThreads);
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (auto& mine : seen) {
      threads.emplace_back([&mine] {
        for (int i = 0; i < kNames; ++i) mine.push_back(limit_id("ids.threads." + std::to_string(i)));
      });
    }
  }
  for (const auto& mine : seen) EXPECT_EQ(mine, seen.front());
  std::ranges::sort(seen.front());
  EXPECT_EQ(std::ranges::adjacent_find(seen.front()), seen.front().end());
}

}  // namespace
}  // namespace sluice::store
