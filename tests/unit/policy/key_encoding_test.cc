#include "policy/key_encoding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

namespace sluice::policy {
namespace {

std::string key_of(std::initializer_list<std::string_view> values) {
  std::vector<Entry> entries;
  for (const std::string_view value : values) entries.push_back({"k", value});
  std::string key;
  append_key(entries, key);
  return key;
}

bool is_clean(std::string_view key) {
  return std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7F && c != '{' && c != '}' && c != '"'; });
}

TEST(KeyEncoding, KeepsPlainValuesReadable) {
  EXPECT_EQ(key_of({"42"}), "42");
  EXPECT_EQ(key_of({"203.0.113.7", "/article/create"}), "203.0.113.7|/article/create");
  EXPECT_EQ(key_of({"2001:db8::1"}), "2001:db8::1");
  EXPECT_EQ(key_of({""}), "%");
  EXPECT_EQ(key_of({"a b|c%#="}), "a%20b%7Cc%25%23%3D");
}

TEST(KeyEncoding, IsBoundedAndDistinctForLongValues) {
  const std::string longest(64, 'x');
  EXPECT_EQ(key_of({longest}), longest);
  const std::string digest = key_of({longest + "x"});
  EXPECT_EQ(digest.size(), 33U);
  EXPECT_EQ(digest[0], '#');
  // The first 128 bits of SHA-256 of 65 × 'x'.
  EXPECT_EQ(digest, "#9537c5fdf120482f7d58d25e9ed583f5");
  EXPECT_NE(key_of({longest + "y"}), digest);
  const std::string rest(135, 'r');
  EXPECT_EQ(key_of({longest, rest}).size(), kMaxKeyBytes);
  EXPECT_EQ(key_of({longest, rest}), longest + "|" + rest);
  EXPECT_EQ(key_of({longest, rest + "r"}).size(), 64U + 1 + 33);
  EXPECT_NE(key_of({"a", rest + "r"}), key_of({"a", rest + "s"}));
  // What is joined before the digest is joined unambiguously.
  EXPECT_NE(key_of({"a", rest + "r", "s"}), key_of({"a", rest, "rs"}));
  EXPECT_NE(key_of({"a", rest, ""}), key_of({"a", rest}));
}

TEST(KeyEncoding, LetsNoValueImitateADigest) {
  const std::string digest = key_of({std::string(100, 'x')});
  EXPECT_NE(key_of({digest}), digest);
}

TEST(KeyEncoding, TellsPairsApart) {
  const auto pair_key = [](std::string_view key, std::string_view value) {
    std::string out;
    KeyWriter writer(out);
    writer.add_pair(key, value);
    writer.finish();
    return out;
  };
  EXPECT_EQ(pair_key("a", "b"), "a=b");
  EXPECT_NE(pair_key("a=b", "c"), pair_key("a", "b=c"));
  EXPECT_EQ(pair_key("a", ""), "a=%");
}

TEST(KeyEncoding, public_report_40) {
  const std::set<std::string> keys{key_of({"aa", "b"}), key_of({"a", "ab"}), key_of({"a:b", "c"}),
                                   key_of({"a", "b:c"})};
  EXPECT_EQ(keys.size(), 4U);
}

TEST(KeyEncoding, public_report_42) {
  using namespace std::string_literals;
  std::set<std::string> keys;
  for (const std::string& value :
       {"a b"s, "a\0b"s, "a\r\nb"s, "日本語"s, std::string(64U << 10U, 'x'), "a"s, "a\nb"s}) {
    const std::string key = key_of({value});
    EXPECT_TRUE(is_clean(key)) << key;
    EXPECT_LE(key.size(), kMaxKeyBytes);
    keys.insert(key);
  }
  EXPECT_EQ(keys.size(), 7U);
}

// Keys are cut to nothing: equal beginnings don't make equal counters.
TEST(KeyEncoding, public_report_48) { EXPECT_NE(key_of({"live_AAAA1"}), key_of({"live_AAAA2"})); }

TEST(KeyEncoding, public_report_65) {
  std::set<std::string> keys;
  for (const std::string_view value : {"{}", "a}b", "{x", ""}) {
    const std::string key = key_of({value});
    EXPECT_TRUE(is_clean(key)) << key;
    EXPECT_FALSE(key.empty());
    keys.insert(key);
    // What stands before the first separator is the same for all keys of the client, and never empty: it can be a hash
    // tag.
    EXPECT_TRUE(key_of({value, "t"}).starts_with(key + "|"));
    EXPECT_TRUE(key_of({value, "ts"}).starts_with(key + "|"));
  }
  EXPECT_EQ(keys.size(), 4U);
}

TEST(KeyEncoding, IsOneToOneForAllBytes) {
  std::set<std::string> keys;
  for (int a = 0; a < 256; ++a) {
    const std::string one(1, static_cast<char>(a));
    keys.insert(key_of({one}));
    for (int b = 0; b < 256; ++b) {
      const std::string two(1, static_cast<char>(b));
      keys.insert(key_of({one + two}));
      keys.insert(key_of({one, two}));
    }
  }
  EXPECT_EQ(keys.size(), 256U + 2 * 65536U);
}

}  // namespace
}  // namespace sluice::policy
