#include "store/redis/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::store::redis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RedisUrl, HostPortDatabase) {
  const auto plain = parse_url("redis://cache.example");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->nodes[0].host, "cache.example");
  EXPECT_EQ(plain->nodes[0].port, 6379);
  EXPECT_EQ(plain->database, 0);
  EXPECT_TRUE(plain->password.empty());

  const auto full = parse_url("redis://me:p%40ss@127.0.0.1:7000/12");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->user, "me");
  EXPECT_EQ(full->password, "p@ss");
  EXPECT_EQ(full->nodes[0].port, 7000);
  EXPECT_EQ(full->database, 12);
  EXPECT_EQ(full->to_text(), "127.0.0.1:7000");
}

TEST(RedisUrl, SixthVersionStandsInBrackets) {
  const auto v6 = parse_url("redis://[2001:db8::1]:7000/");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->nodes[0].host, "2001:db8::1");
  EXPECT_EQ(v6->to_text(), "[2001:db8::1]:7000");
  EXPECT_EQ(parse_url("redis://[::1]")->nodes[0].port, 6379);
  EXPECT_THAT(parse_url("redis://::1").error().message, HasSubstr("brackets"));
  EXPECT_THAT(parse_url("redis://[::1").error().message, HasSubstr("']'"));
  EXPECT_THAT(parse_url("redis://[::1]x").error().message, HasSubstr("']'"));
}

TEST(RedisUrl, APasswordMayHoldSlashesAndAtSigns) {
  const auto url = parse_url("redis://:a/b@c@host/1");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->password, "a/b@c");
  EXPECT_EQ(url->nodes[0].host, "host");
  EXPECT_EQ(url->database, 1);
}

TEST(RedisUrl, UnixSocket) {
  const auto url = parse_url("unix://:pw@/run/redis.sock?db=2");
  ASSERT_TRUE(url);
  EXPECT_TRUE(url->nodes[0].host.empty());
  EXPECT_EQ(url->nodes[0].path, "/run/redis.sock");
  EXPECT_EQ(url->password, "pw");
  EXPECT_EQ(url->database, 2);
  EXPECT_EQ(url->to_text(), "/run/redis.sock");
  EXPECT_FALSE(parse_url("unix://run/redis.sock"));
  EXPECT_FALSE(parse_url("unix:///run/redis.sock?database=2"));
  EXPECT_FALSE(parse_url("unix:///run/redis.sock?db=x"));
  EXPECT_TRUE(parse_url("unix:///" + std::string(106, 'x') + "?db=2"));
  EXPECT_THAT(parse_url("unix:///" + std::string(107, 'x')).error().message, HasSubstr("108 bytes, at most 107"));
}

TEST(RedisUrl, Tls) {
  const auto url = parse_url("rediss://:pw@h/3");
  ASSERT_TRUE(url);
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->topology, Topology::standalone);
  EXPECT_EQ(url->database, 3);
  EXPECT_FALSE(parse_url("redis://h")->tls);
  EXPECT_TRUE(parse_url("rediss-sentinel://h/m")->tls);
  EXPECT_TRUE(parse_url("rediss+cluster://h")->tls);
}

TEST(RedisUrl, SeveralAddressesAreACluster) {
  for (const char* text : {"redis://u:p@a:7000,b,[::1]:7002", "redis+cluster://u:p@a:7000,b,[::1]:7002"}) {
    const auto url = parse_url(text);
    ASSERT_TRUE(url) << url.error().message;
    EXPECT_EQ(url->topology, Topology::cluster);
    EXPECT_THAT(url->nodes, ElementsAre(Address{.host = "a", .port = 7000}, Address{.host = "b", .port = 6379},
                                        Address{.host = "::1", .port = 7002}));
    EXPECT_EQ(url->user, "u");
    EXPECT_EQ(url->to_text(), "cluster a:7000,b:6379,[::1]:7002");
  }
  EXPECT_EQ(parse_url("redis+cluster://a")->topology, Topology::cluster);
  EXPECT_EQ(parse_url("redis-cluster://a")->topology, Topology::cluster);
  EXPECT_THAT(parse_url("redis://a,b/1").error().message, HasSubstr("database"));
  EXPECT_THAT(parse_url("redis://a,,b").error().message, HasSubstr("host is missing"));
  EXPECT_THAT(parse_url("redis+cluster:///run/redis.sock").error().message, HasSubstr("unix:///path"));
  EXPECT_THAT(parse_url("redis+cluster://a", "m").error().message, HasSubstr("master's name"));
}

TEST(RedisUrl, Sentinels) {
  for (const char* text : {"redis-sentinel://u:p@a,b:5/mymaster/2", "redis+sentinel://u:p@a,b:5/2#mymaster",
                           "redis-sentinel://u:p@a,b:5/mymaster/2"}) {
    const auto url = parse_url(text);
    ASSERT_TRUE(url) << url.error().message;
    EXPECT_EQ(url->topology, Topology::sentinel);
    EXPECT_THAT(url->nodes, ElementsAre(Address{.host = "a", .port = 26379}, Address{.host = "b", .port = 5}));
    EXPECT_EQ(url->master, "mymaster");
    EXPECT_EQ(url->database, 2);
    EXPECT_EQ(url->password, "p");
    EXPECT_EQ(url->to_text(), "master mymaster of a:26379,b:5");
  }
  const auto named = parse_url("redis://a,b/2", "mymaster");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->topology, Topology::sentinel);
  EXPECT_EQ(named->nodes[0].port, 26379);
  EXPECT_EQ(named->database, 2);
  EXPECT_EQ(parse_url("redis-sentinel://a/", "m")->master, "m");
  EXPECT_THAT(parse_url("redis-sentinel://a").error().message, HasSubstr("name is missing"));
  EXPECT_THAT(parse_url("redis-sentinel://a/").error().message, HasSubstr("name is missing"));
  EXPECT_THAT(parse_url("redis-sentinel://a/m/x").error().message, HasSubstr("database"));
  EXPECT_THAT(parse_url("unix:///s", "m").error().message, HasSubstr("sentinels"));
}

TEST(RedisUrl, AMasterThatIsNamedTwice) {
  for (const char* url :
       {"redis-sentinel://a/m", "redis-sentinel://a/m/2", "redis-sentinel://a/2", "redis-sentinel://a/",
        "redis+sentinel://a/2#m", "redis+sentinel://a#m", "redis://a,b/m", "redis://a/2"}) {
    const auto result = parse_url(url, "m");
    ASSERT_TRUE(result) << url << ": " << result.error().message;
    EXPECT_EQ(result->master, "m") << url;
    EXPECT_EQ(result->topology, Topology::sentinel) << url;
    EXPECT_EQ(result->database, std::string_view(url).find('2') == std::string_view::npos ? 0 : 2) << url;
  }
  for (const char* url :
       {"redis-sentinel://a/other", "redis-sentinel://a/other/2", "redis+sentinel://a#other", "redis://a,b/other"}) {
    EXPECT_THAT(parse_url(url, "m").error().message, HasSubstr("named twice")) << url;
  }
}

TEST(RedisUrl, OddEndings) {
  EXPECT_THAT(parse_url("redis://h:1?db=2").error().message, HasSubstr("redis://host:6379/2"));
  EXPECT_THAT(parse_url("redis://h/?db=").error().message, HasSubstr("'?'"));
  EXPECT_THAT(parse_url("redis-sentinel://h/m?db=2").error().message, HasSubstr("'?'"));
  EXPECT_TRUE(parse_url("redis://:a?b@h"));
  EXPECT_THAT(parse_url("unix:///s?db=").error().message, HasSubstr("?db="));
  EXPECT_THAT(parse_url("unix:///s?").error().message, HasSubstr("only db=N"));
  for (const char* url : {"redis://h:1 ", " redis://h:1", "redis://h\n", "unix:///s\t"}) {
    EXPECT_THAT(parse_url(url).error().message, HasSubstr("begins or ends")) << url;
  }
  for (const char* url : {"redis://a,", "redis://a,b:1,", "redis-sentinel://a,/m", "redis+cluster://a,"}) {
    EXPECT_THAT(parse_url(url).error().message, HasSubstr("last ','")) << url;
  }
}

TEST(RedisUrl, AUserWhosePasswordIsElsewhere) {
  for (const char* text : {"redis://m%65@h", "redis://m%65:@h", "unix://m%65@/s"}) {
    const auto url = parse_url(text);
    ASSERT_TRUE(url) << text;
    EXPECT_EQ(url->user, "me") << text;
    EXPECT_EQ(url->password, "") << text;
  }
}

TEST(RedisUrl, HostsThatCannotBe) {
  for (const char* url : {"redis://h#m", "redis://a b", "redis://h%20x:1", "redis://h\n:1", "redis://h\x7f",
                          "redis://a,b c", "redis-sentinel://h h/m", "redis://a:b@c d"}) {
    const auto result = parse_url(url);
    ASSERT_FALSE(result) << url;
    EXPECT_THAT(result.error().message, HasSubstr("no host has")) << url;
  }
  for (const char* url : {"redis://[zz]:1", "redis://[a.b]", "redis://[1 2:]"}) {
    const auto result = parse_url(url);
    ASSERT_FALSE(result) << url;
    EXPECT_THAT(result.error().message, HasSubstr("IPv6")) << url;
  }
  for (const char* url : {"redis://my_redis-1.example.", "redis://[fe80::1%eth0]:1", "redis://[::ffff:1.2.3.4]",
                          "redis://\xc3\xbc.example"}) {
    EXPECT_TRUE(parse_url(url)) << url;
  }
}

TEST(RedisUrl, WrongOnesAreNamedWithoutThePassword) {
  EXPECT_THAT(parse_url("host:6379").error().message, HasSubstr("redis://"));
  for (const char* url :
       {"redis://", "redis://:secret@", "redis://:secret@h:0", "redis://:secret@h:65536",
        "redis://:secret@h:", "redis://:secret@h:6x", "redis://:secret@h/x", "redis://:secret@h/-1",
        "redis://:secret%2@h", "redis://@h", "redis://:@h", "redis://:secret%zz@h", "redis://:secret@h/99999999999"}) {
    const auto result = parse_url(url);
    ASSERT_FALSE(result) << url;
    EXPECT_THAT(result.error().message, Not(HasSubstr("secret"))) << url;
  }
}

}  // namespace
}  // namespace sluice::store::redis
