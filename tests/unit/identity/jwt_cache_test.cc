#include "identity/jwt_cache.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::identity {
namespace {

Jwt jwt_of(std::string_view sub, std::int64_t from = 0, std::int64_t until = 100) {
  Jwt jwt;
  jwt.claims = {std::string(sub)};
  jwt.valid_from = from;
  jwt.valid_until = until;
  return jwt;
}

TEST(JwtCache, knows_a_token_by_all_of_its_text) {
  JwtCache cache(64);
  cache.put("token-a", 1, jwt_of("a"));
  const Jwt* const found = cache.find("token-a", 1, 50);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->claims[0], "a");
  for (const std::string_view other : {"token-", "token-b", "token-a ", "token-A", ""}) {
    EXPECT_EQ(cache.find(other, 1, 50), nullptr) << other;
  }
}

TEST(JwtCache, forgets_what_has_ended_or_has_not_begun) {
  JwtCache cache(64);
  cache.put("t", 1, jwt_of("a", 10, 100));
  EXPECT_EQ(cache.find("t", 1, 9), nullptr);
  cache.put("t", 1, jwt_of("a", 10, 100));
  EXPECT_NE(cache.find("t", 1, 99), nullptr);
  EXPECT_EQ(cache.find("t", 1, 100), nullptr);
  EXPECT_EQ(cache.find("t", 1, 50), nullptr);
}

TEST(JwtCache, other_keys_end_what_the_old_ones_verified) {
  JwtCache cache(64);
  cache.put("t", 1, jwt_of("a"));
  EXPECT_EQ(cache.find("t", 2, 50), nullptr);
}

TEST(JwtCache, is_bounded_and_keeps_what_is_used) {
  JwtCache cache(64);
  cache.put("hot", 1, jwt_of("hot"));
  for (int i = 0; i < 10'000; ++i) {
    cache.put("token-" + std::to_string(i), 1, jwt_of("x"));
    ASSERT_NE(cache.find("hot", 1, 50), nullptr) << i;
  }
  int kept = 0;
  for (int i = 0; i < 10'000; ++i) kept += cache.find("token-" + std::to_string(i), 1, 50) != nullptr ? 1 : 0;
  EXPECT_LE(kept, 63);
  EXPECT_GE(kept, 48);
}

TEST(JwtCache, does_not_keep_what_is_very_long) {
  JwtCache cache(64);
  const std::string token(JwtCache::kLongest + 1, 'x');
  cache.put(token, 1, jwt_of("a"));
  EXPECT_EQ(cache.find(token, 1, 50), nullptr);
}

}  // namespace
}  // namespace sluice::identity
