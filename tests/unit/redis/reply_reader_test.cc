#include "store/redis/reply_reader.h"

#include <gtest/gtest.h>

#include "tests/unit/redis/redis_test_util.h"

namespace sluice::store::redis {
namespace {

TEST(ReplyReader, SplitAtEachByte) {
  const std::string bytes = testing::answer(testing::kNow, "1", {"-", std::string("a\0\r\nb", 5)}) + "-ERR no\r\n";
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    ReplyReader reader;
    reader.feed(std::string_view(bytes).substr(0, cut));
    std::vector<Reply> replies;
    while (Reply reply = reader.next()) replies.push_back(std::move(reply));
    reader.feed(std::string_view(bytes).substr(cut));
    while (Reply reply = reader.next()) replies.push_back(std::move(reply));
    ASSERT_FALSE(reader.failed());
    ASSERT_EQ(replies.size(), 2U) << cut;
    ASSERT_EQ(replies[0]->elements, 4U);
    EXPECT_EQ(replies[0]->element[2]->type, REDIS_REPLY_NIL);
    EXPECT_EQ(text_of(*replies[0]->element[3]), std::string_view("a\0\r\nb", 5));
    EXPECT_EQ(text_of(*replies[1]), "ERR no");
  }
}

TEST(ReplyReader, WhatIsNotTheProtocolFails) {
  for (const std::string_view bytes :
       {"HTTP/1.1 400 Bad Request\r\n", "\r\n", "$-2\r\n", "*4097\r\n", "*2147483647\r\n"}) {
    ReplyReader reader;
    reader.feed(bytes);
    EXPECT_EQ(reader.next(), nullptr);
    EXPECT_TRUE(reader.failed()) << bytes;
    reader.feed(":1\r\n");
    EXPECT_EQ(reader.next(), nullptr);
  }
}

}  // namespace
}  // namespace sluice::store::redis
