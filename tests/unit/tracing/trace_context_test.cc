#include "tracing/trace_context.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice::tracing {
namespace {

using namespace std::string_literals;

constexpr std::string_view kGood = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceParentText, IsRead) {
  const auto parent = parse_traceparent(kGood);
  ASSERT_TRUE(parent);
  EXPECT_EQ(parent->trace,
            (TraceId{0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36}));
  EXPECT_EQ(parent->span, (SpanId{0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7}));
  EXPECT_TRUE(parent->is_sampled());
  const auto other = parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-fe");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->flags, 0xfe);
  EXPECT_FALSE(other->is_sampled());
}

TEST(TraceParentText, OfALaterVersionIsReadAsFarAsItIsKnown) {
  for (const char* more : {"", "-", "-01", "-what the future will be like"}) {
    const auto parent = parse_traceparent("cc" + std::string(kGood.substr(2)) + more);
    ASSERT_TRUE(parent) << more;
    EXPECT_EQ(parent->trace[0], 0x4b);
    EXPECT_TRUE(parent->is_sampled());
  }
  EXPECT_EQ(parse_traceparent("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff")->flags, 1);
  EXPECT_FALSE(parse_traceparent("cc" + std::string(kGood.substr(2)) + ".01"));
  EXPECT_FALSE(parse_traceparent("cc" + std::string(kGood.substr(2)) + "0"));
}

TEST(TraceParentText, MalformedIsNone) {
  // Every byte but those of the digits is as it must be, and there are no more and no fewer.
  for (std::size_t i = 0; i < kGood.size(); ++i) {
    for (const char c : {'g', 'A', 'F', ' ', '_', '\0', '\x80', '.'}) {
      std::string text(kGood);
      text[i] = c;
      EXPECT_FALSE(parse_traceparent(text)) << text;
    }
    EXPECT_FALSE(parse_traceparent(kGood.substr(0, i))) << i;
  }
  for (const std::string& text :
       {""s, std::string(kGood) + "-", std::string(kGood) + " ", " "s + std::string(kGood), std::string(kGood) + "-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"s,
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01"s,
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"s,
        "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01"s,
        "00-4bf92f3577b34da6a3ce929d0e0e47360-0f067aa0ba902b7-01"s,
        "0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-001"s}) {
    EXPECT_FALSE(parse_traceparent(text)) << text;
  }
}

TEST(TraceStateText, IsAListOfMembers) {
  std::string most;
  for (int i = 0; i < 32; ++i) most += (i == 0 ? "k" : ",k") + std::to_string(i) + "=1";
  for (const std::string& text : {""s, "a=1"s, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"s, "a=1 ,\tb=2"s, "a=1,,b=2,"s,
                                  ","s, "fw529a3039@dt=F;x y"s, "0a=1"s, "a-_*/@=!~"s, "a= x"s,
                                  std::string(256, 'a') + "=1", "a=" + std::string(256, 'x'), most}) {
    EXPECT_TRUE(is_tracestate(text)) << text;
  }
  for (const std::string& text : {"a"s, "="s, "=1"s, "a="s, "a=,b=1"s, "A=1"s, "a =1"s, "a=1=2"s, "a=1,a=2"s, "@a=1"s,
                                  "_a=1"s, "a=\x7f"s, "a=\t1"s, "a=\xc3\xa4"s, "a=1;b"s + "\n",
                                  std::string(257, 'a') + "=1", "a=" + std::string(257, 'x'), most + ",z=1"}) {
    EXPECT_FALSE(is_tracestate(text)) << text;
  }
}

TEST(TraceFields, AreTakenTogether) {
  TraceFields fields;
  EXPECT_FALSE(fields.parent());
  fields.add_state("a=1");
  EXPECT_EQ(fields.state(), "");  // without a parent it says nothing
  fields.add_parent(kGood);
  fields.add_state("");
  fields.add_state("b=2,c=3");
  EXPECT_TRUE(fields.parent());
  EXPECT_EQ(fields.state(), "a=1,b=2,c=3");
  fields.add_state("b=4");  // twice the same key
  EXPECT_EQ(fields.state(), "");
  EXPECT_TRUE(fields.parent());
  fields.add_parent(kGood);  // nobody knows which
  EXPECT_FALSE(fields.parent());
  fields.clear();
  fields.add_parent("00-0-0-0");
  fields.add_parent(kGood);
  EXPECT_FALSE(fields.parent());
  fields.clear();
  fields.add_parent(kGood);
  EXPECT_TRUE(fields.parent());
  EXPECT_EQ(fields.state(), "");
}

TEST(TraceFields, AStateThatIsTooLongIsLeftOut) {
  TraceFields fields;
  fields.add_parent(kGood);
  fields.add_state("a=" + std::string(250, 'x'));
  fields.add_state("b=" + std::string(256, 'x'));
  EXPECT_EQ(fields.state().size(), 511U);
  fields.add_state("c=1");
  EXPECT_EQ(fields.state(), "");
  for (int i = 0; i < 1'000; ++i) fields.add_state(std::string(1'000, 'x'));
  EXPECT_EQ(fields.state(), "");
  EXPECT_TRUE(fields.parent());
}

}  // namespace
}  // namespace sluice::tracing
