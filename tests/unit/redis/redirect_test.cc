#include "store/redis/redirect.h"

#include <gtest/gtest.h>

namespace sluice::store::redis {
namespace {

TEST(Redirect, NamesANode) {
  const auto moved = parse_redirect("MOVED 3999 127.0.0.1:6381");
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->kind, Redirect::Kind::moved);
  EXPECT_EQ(moved->slot, 3999);
  EXPECT_EQ(moved->to, (Address{.host = "127.0.0.1", .port = 6381}));
  EXPECT_FALSE(moved->is_down);
  const auto ask = parse_redirect("ASK 16383 redis-1.example:65535");
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->kind, Redirect::Kind::ask);
  EXPECT_EQ(ask->slot, 16383);
  EXPECT_EQ(ask->to, (Address{.host = "redis-1.example", .port = 65535}));
}

TEST(Redirect, TakesIPv6AndAHostThatIsMissing) {
  EXPECT_EQ(parse_redirect("MOVED 0 2001:db8::1:7000")->to, (Address{.host = "2001:db8::1", .port = 7000}));
  EXPECT_EQ(parse_redirect("MOVED 0 :7000")->to, (Address{.host = "", .port = 7000}));
}

TEST(Redirect, SaysToTryAgain) {
  const auto again = parse_redirect("TRYAGAIN Multiple keys request during rehashing of slot");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->kind, Redirect::Kind::try_again);
  EXPECT_FALSE(again->is_down);
  const auto down = parse_redirect("CLUSTERDOWN Hash slot not served");
  ASSERT_TRUE(down);
  EXPECT_EQ(down->kind, Redirect::Kind::try_again);
  EXPECT_TRUE(down->is_down);
  EXPECT_TRUE(parse_redirect("CLUSTERDOWN The cluster is down")->is_down);
}

TEST(Redirect, AnythingElseIsNone) {
  for (const char* text : {"",
                           "MOVED",
                           "MOVED ",
                           "MOVED 1",
                           "MOVED 16384 a:1",
                           "MOVED -1 a:1",
                           "MOVED 1 a",
                           "MOVED 1 a:",
                           "MOVED 1 a:0",
                           "MOVED 1 a:65536",
                           "MOVED 1 a:1 ",
                           "MOVED 1 a:x",
                           "MOVED x a:1",
                           "MOVED 1:1",
                           "MOVED:1 a",
                           "moved 1 a:1",
                           "MOVED1 a:1",
                           "ASK",
                           "ASK  a:1",
                           "ASKING 1 a:1",
                           "ERR MOVED 1 a:1",
                           "READONLY You can't write",
                           "CROSSSLOT x",
                           "MASTERDOWN x",
                           "NOSCRIPT x",
                           "ERR TRYAGAIN"}) {
    EXPECT_FALSE(parse_redirect(text)) << text;
  }
}

}  // namespace
}  // namespace sluice::store::redis
