#include "front/http/json_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice::http {
namespace {

/// Reads any value; false on a fault.
bool walk(JsonReader& reader) {
  std::string_view text;
  bool truth = false;
  switch (reader.peek()) {
    case JsonType::object:
      if (!reader.begin_object()) return false;
      while (reader.next_member(text)) {
        if (!walk(reader)) return false;
      }
      return !reader.failed();
    case JsonType::array:
      if (!reader.begin_array()) return false;
      while (reader.next_element()) {
        if (!walk(reader)) return false;
      }
      return !reader.failed();
    case JsonType::string:
      return reader.read_string(text);
    case JsonType::number:
      return reader.read_number(text);
    case JsonType::boolean:
      return reader.read_bool(truth);
    case JsonType::null:
      return reader.read_null();
    case JsonType::none:
      break;
  }
  return false;
}

/// "" when `text` is JSON, else place and fault.
std::string fault_of(std::string_view text) {
  std::string arena;
  JsonReader reader(text, arena);
  if (walk(reader) && reader.finish()) return "";
  return reader.place() + ": " + reader.fault();
}

std::string string_of(std::string_view text) {
  std::string arena;
  JsonReader reader(text, arena);
  std::string_view value;
  EXPECT_TRUE(reader.read_string(value)) << text;
  return std::string(value);
}

TEST(JsonReader, accepts_what_is_json) {
  for (const std::string_view text :
       {"{}", "[]", " [ 1 , 2.5e-3 , -0 , \"x\" , true , false , null ] ", R"({"a":{"b":[{}]},"c":""})", "0", "\"\"",
        "1E+9", "\"\x7F\"", "\"日本語 \xF0\x9F\x98\x80\""}) {
    EXPECT_EQ(fault_of(text), "") << text;
  }
}

TEST(JsonReader, tells_what_is_wrong_and_where) {
  struct Case {
    std::string_view text;
    std::string_view fault;
  };
  for (const auto& [text, fault] : std::vector<Case>{
           {"", "line 1, column 1: expected a value, found the end of the text"},
           {"  ", "line 1, column 3: expected a value, found the end of the text"},
           {"x", "line 1, column 1: expected a value, found 'x'"},
           {"{\"a\":1,}", "line 1, column 8: expected a name in double quotes, found '}'"},
           {"{,}", "line 1, column 2: expected a name in double quotes or '}', found ','"},
           {"{\"a\" 1}", "line 1, column 6: expected ':', found '1'"},
           {"{\"a\":1 \"b\":2}", "line 1, column 8: expected ',' or '}', found '\"'"},
           {"{a:1}", "line 1, column 2: expected a name in double quotes or '}', found 'a'"},
           {"[1 2]", "line 1, column 4: expected ',' or ']', found '2'"},
           {"[1,]", "line 1, column 4: expected a value, found ']'"},
           {"[,1]", "line 1, column 2: expected a value, found ','"},
           {"[", "line 1, column 2: expected a value or ']', found the end of the text"},
           {"[\n  1,\n  \"é\", x]", "line 3, column 8: expected a value, found 'x'"},
           {"{} {}", "line 1, column 4: expected nothing more after the value, found '{'"},
           {"[01]", "line 1, column 3: expected ',' or ']', found '1'"},
           {"[1.]", "line 1, column 2: a malformed number"},
           {"[-]", "line 1, column 2: a malformed number"},
           {"[1e]", "line 1, column 2: a malformed number"},
           {"[+1]", "line 1, column 2: expected a value, found '+'"},
           {"[tru]", "line 1, column 2: expected true, false or null, found 't'"},
           {"[nul]", "line 1, column 2: expected true, false or null, found 'n'"},
           {"\"abc", "line 1, column 5: expected '\"' at the end of a string, found the end of the text"},
           {"\"a\\", "line 1, column 4: expected '\"' at the end of a string, found the end of the text"},
           {"\"a\nb\"", "line 1, column 3: expected an escape for a control character, found byte 0x0a"},
           {"\"\\n\tb\"", "line 1, column 4: expected an escape for a control character, found byte 0x09"},
           {"\"\\x\"", "line 1, column 3: expected one of \"\\/bfnrtu after '\\', found 'x'"},
           {"\"\\u12g4\"", "line 1, column 6: expected four hexadecimal digits after '\\u', found 'g'"},
           {"\"\\u12", "line 1, column 6: expected four hexadecimal digits after '\\u', found the end of the text"},
           {"\"\\ud800x\"", "line 1, column 8: a high surrogate without a low one after it"},
           {"\"\\ud800\\u0041\"", "line 1, column 14: a high surrogate without a low one after it"},
           {"\"\\udc00\"", "line 1, column 8: a low surrogate without a high one before it"},
       }) {
    EXPECT_EQ(fault_of(text), fault) << text;
  }
}

TEST(JsonReader, refuses_bytes_that_are_not_utf8) {
  for (const std::string_view bytes :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x9F\xBF", "\xE2\x82", "\xED\xA0\x80",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    for (const std::string_view before : {"", "\\n"}) {
      const std::string text = "\"" + std::string(before) + std::string(bytes) + "\"";
      EXPECT_NE(fault_of(text).find("expected UTF-8"), std::string::npos) << text;
    }
  }
}

TEST(JsonReader, decodes_escapes) {
  EXPECT_EQ(string_of(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(string_of(R"("a\u0000b")"), std::string("a\0b", 3));
  EXPECT_EQ(string_of(R"("\u00e9\u20AC\ud83d\ude00z")"), "é€\xF0\x9F\x98\x80z");
}

TEST(JsonReader, keeps_decoded_strings_in_place) {
  std::string arena;
  const std::string_view text =
      R"(["\u0041first, long enough to leave any small buffer","\u0042second, just as long as that one"])";
  JsonReader reader(text, arena);
  std::string_view first;
  std::string_view second;
  ASSERT_TRUE(reader.begin_array() && reader.next_element() && reader.read_string(first));
  ASSERT_TRUE(reader.next_element() && reader.read_string(second));
  EXPECT_EQ(first, "Afirst, long enough to leave any small buffer");
  EXPECT_EQ(second, "Bsecond, just as long as that one");
}

TEST(JsonReader, stays_failed) {
  std::string arena;
  JsonReader reader("[x, 1]", arena);
  std::string_view token;
  ASSERT_TRUE(reader.begin_array());
  ASSERT_TRUE(reader.next_element());
  EXPECT_FALSE(reader.read_number(token));
  const std::string fault = reader.fault();
  EXPECT_FALSE(reader.next_element());
  EXPECT_FALSE(reader.read_null());
  EXPECT_FALSE(reader.finish());
  EXPECT_EQ(reader.fault(), fault);
}

}  // namespace
}  // namespace sluice::http
