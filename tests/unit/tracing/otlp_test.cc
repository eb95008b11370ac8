#include "tracing/otlp.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "tests/integration/support/collector.h"

namespace sluice::tracing {
namespace {

using namespace std::string_literals;

Span made() {
  Span span;
  for (std::size_t i = 0; i < span.trace.size(); ++i) span.trace[i] = static_cast<std::uint8_t>(i);
  span.id = {1, 2, 3, 4, 5, 6, 7, 8};
  span.name = "POST /v1/check";
  span.begun = 1'767'225'600'000'000'000;
  span.ended = span.begun + 42;
  return span;
}

TEST(Otlp, EverythingOfASpanIsTold) {
  Span span = made();
  span.parent = {9, 9, 9, 9, 9, 9, 9, 0xff};
  span.has_parent = true;
  span.flags = 3;
  span.state = "a=1";
  span.failed = true;
  span.set("text", "value");
  span.set("number", std::int64_t{-7});
  const test::SeenExport seen =
      test::read_export(encode_traces(std::vector{span, made()}, {.service = "s", .version = "1.2", .instance = "i"}));
  EXPECT_EQ(seen.resource, (std::map<std::string, std::string>{
                               {"service.name", "s"}, {"service.version", "1.2"}, {"service.instance.id", "i"}}));
  EXPECT_EQ(seen.scope, "sluice");
  ASSERT_EQ(seen.spans.size(), 2U);
  const test::SeenSpan& one = seen.spans[0];
  EXPECT_EQ(one.trace, "000102030405060708090a0b0c0d0e0f");
  EXPECT_EQ(one.id, "0102030405060708");
  EXPECT_EQ(one.parent, "09090909090909ff");
  EXPECT_EQ(one.state, "a=1");
  EXPECT_EQ(one.name, "POST /v1/check");
  EXPECT_EQ(one.kind, 2U);
  EXPECT_EQ(one.begun, 1'767'225'600'000'000'000U);
  EXPECT_EQ(one.ended, 1'767'225'600'000'000'042U);
  EXPECT_EQ(one.flags, 0x303U);
  EXPECT_EQ(one.status, 2U);
  EXPECT_EQ(one.attributes, (std::map<std::string, std::string>{{"text", "value"}, {"number", "-7"}}));
  EXPECT_EQ(seen.spans[1].parent + seen.spans[1].state, "");
  EXPECT_EQ(seen.spans[1].flags, 0x101U);
  EXPECT_EQ(seen.spans[1].status, 0U);
}

// A collector refuses a whole batch for one text that is not UTF-8.
TEST(Otlp, TextsAreCutAndUtf8) {
  EXPECT_EQ(text_of("a\xff\xc3"s), "a\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(text_of(std::string(300, 'x')).size(), kMostTextBytes);
  const std::string cut = text_of("x" + [] {
    std::string umlauts;
    for (int i = 0; i < 200; ++i) umlauts += "\xc3\xa4";
    return umlauts;
  }());
  EXPECT_EQ(cut.size(), 255U);
  EXPECT_TRUE(is_utf8(cut));
}

TEST(Otlp, WhatWasRefusedIsRead) {
  EXPECT_EQ(refused_of(""), 0);
  EXPECT_EQ(refused_of("\x0a\x02\x08\x03"s), 3);
  EXPECT_EQ(refused_of("\x0a\x06\x08\x03\x12\x02no"s), 3);
  EXPECT_EQ(refused_of("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s), 0);  // -1
  EXPECT_EQ(refused_of("{}"), 0);
  EXPECT_EQ(refused_of("\x0a\xff"s), 0);
}

}  // namespace
}  // namespace sluice::tracing
