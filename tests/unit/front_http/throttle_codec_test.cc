#include "front/http/throttle_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice::http {
namespace {

using testing::HasSubstr;

struct Read {
  unsigned status;
  std::string fault;
  resp::Throttle throttle;
};

Read read(std::string_view text) {
  Read out;
  std::string arena;
  out.status = decode_throttle(text, out.throttle, arena, out.fault);
  return out;
}

/// With one member of it replaced.
Read with(const std::string& member) {
  return read(R"({"key":"k","max_burst":10,"count_per_period":100,)" + member + "}");
}

TEST(ThrottleCodec, TakesWhatThrottlecrabTakes) {
  const Read plain = with(R"("period":60)");
  EXPECT_EQ(plain.status, 200U) << plain.fault;
  EXPECT_EQ(plain.throttle.cost, 1U);
  EXPECT_EQ(plain.throttle.bucket.burst, 10U);
  EXPECT_EQ(with(R"("period":60,"quantity":null,"more":[1,{"a":2}])").throttle.cost, 1U);
  EXPECT_EQ(with(R"("quantity":0,"period":31622400)").status, 200U);
}

// What is JSON and no request is 422, as there; what is no JSON, or out of the range, 400.
TEST(ThrottleCodec, TellsWhatIsWrong) {
  for (const std::string_view text : {"[]", R"("k")", "7", "null", "true", "{}", " [1, 2] "}) {
    EXPECT_EQ(read(text).status, 422U) << text;
  }
  for (const std::string_view text : {"", "{", "[", "nonsense", R"({"key":"k")", "{} {}", R"({"key":"k",})"}) {
    EXPECT_EQ(read(text).status, 400U) << text;
  }
  EXPECT_THAT(read("[]").fault, HasSubstr("expected an object, found an array"));
  EXPECT_EQ(with(R"("quantity":1)").fault, "missing field `period`");
  EXPECT_EQ(with(R"("period":60,"max_burst":11)").fault, "duplicate field `max_burst`");
  EXPECT_EQ(with(R"("period":60,"quantity":null,"quantity":2)").status, 422U);
  for (const std::string number : {"60.0", "6e1", "0.5", "9223372036854775808", "-9223372036854775809"}) {
    const Read wrong = with("\"period\":" + number);
    EXPECT_EQ(wrong.status, 422U) << number;
    EXPECT_EQ(wrong.fault, "period must be a whole number of 64 bits, is '" + number + "'");
  }
  EXPECT_EQ(with(R"("period":"60")").status, 422U);
  EXPECT_EQ(with(R"("period":true)").status, 422U);
  EXPECT_EQ(with(R"("period":60,"quantity":-1)").status, 400U);
  EXPECT_EQ(with(R"("period":0)").status, 400U);
  EXPECT_EQ(with(R"("period":31622401)").fault, "period must be 1 to 31622400, is 31622401");
}

}  // namespace
}  // namespace sluice::http
