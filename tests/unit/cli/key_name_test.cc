#include "cli/key_name.h"

#include <gtest/gtest.h>

#include <string>

namespace {

using sluice::cli::KeyName;
using sluice::store::redis::append_redis_key;
using sluice::store::redis::KeyNaming;

TEST(KeyName, WhatTheStoreNamesIsRead) {
  for (const std::uint32_t groups : {0U, 1U, 64U}) {
    const KeyNaming naming(std::string_view("sluice:"), groups);
    for (const char* key : {"42", "", "42|a|b", "%2f~abc"}) {
      std::string name;
      append_redis_key(name, naming, "shop/user;tb", key);
      const auto parts = KeyName::parse(name, naming);
      ASSERT_TRUE(parts.has_value()) << name;
      EXPECT_EQ(parts->identity, "shop/user;tb");
      EXPECT_EQ(parts->key, key);
    }
  }
}

TEST(KeyName, WhatIsNotOursIsNot) {
  for (const char* name :
       {"other", "", "sluice:", "sluice:x", "sluice:{42", "sluice:{42}", "sluice:{42}|x", "Sluice:{42}x",
        "sluice:ticket:1", "sluice:{42}a b", "sluice:{42}x\xff", "sluice:{42}{x}", "other:{42}x"}) {
    EXPECT_FALSE(KeyName::parse(name, "sluice:").has_value()) << name;
  }
  const KeyNaming grouped(std::string_view("sluice:"), 64);
  EXPECT_FALSE(KeyName::parse("sluice:{42}shop/user;tb", grouped).has_value());
  // Of another group than its first value leads to.
  EXPECT_FALSE(KeyName::parse("sluice:{64}42}shop/user;tb", grouped).has_value());
  EXPECT_FALSE(KeyName::parse("sluice:{3}42}shop/user;tb", "sluice:").has_value());
}

}  // namespace
