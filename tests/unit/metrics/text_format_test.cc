#include "metrics/text_format.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/metrics/exposition_lint.h"

namespace sluice::metrics {
namespace {

TEST(EscapeLabel, EscapesWhatTheFormatNeeds) {
  EXPECT_EQ(escape_label("user"), "user");
  EXPECT_EQ(escape_label(""), "");
  EXPECT_EQ(escape_label("a\"b\\c\nd"), R"(a\"b\\c\nd)");
  EXPECT_EQ(escape_label("Müller 日本語 🙂"), "Müller 日本語 🙂");
}

TEST(EscapeLabel, ReplacesWhatIsNotUtf8) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(escape_label("a\xFFz"), "a" + r + "z");
  EXPECT_EQ(escape_label("\xC3"), r);                               // cut short
  EXPECT_EQ(escape_label("\xC0\xAF"), r + r);                       // too long a form of '/'
  EXPECT_EQ(escape_label("\xE0\x80\xAF"), r + r + r);               // ″
  EXPECT_EQ(escape_label("\xED\xA0\x80"), r + r + r);               // a surrogate
  EXPECT_EQ(escape_label("\xF4\x90\x80\x80"), r + r + r + r);       // above U+10FFFF
  EXPECT_EQ(escape_label("\xF4\x8F\xBF\xBF"), "\xF4\x8F\xBF\xBF");  // U+10FFFF
  EXPECT_EQ(escape_label(std::string("\0", 1)), std::string("\0", 1));
}

TEST(TextFormat, WritesFamiliesAndSamples) {
  TextFormat text;
  text.family("x_total", "counter", "Of \\ and\nof \"x\".");
  text.sample({}, std::uint64_t{18'446'744'073'709'551'615U});
  text.family("y_bytes", "gauge", "Y.");
  text.sample({{"a", "1"}, {"b", "\"\n"}}, 0.5);
  text.sample({{"a", "2"}}, 1e300);
  text.sample({{"a", "3"}}, -std::numeric_limits<double>::infinity());
  text.sample({{"a", "4"}}, std::numeric_limits<double>::quiet_NaN());
  text.sample({{"a", "5"}}, 12345678.0);
  const std::string page = text.take();
  EXPECT_EQ(page,
            "# HELP x_total Of \\\\ and\\nof \"x\".\n"
            "# TYPE x_total counter\n"
            "x_total 18446744073709551615\n"
            "# HELP y_bytes Y.\n"
            "# TYPE y_bytes gauge\n"
            "y_bytes{a=\"1\",b=\"\\\"\\n\"} 0.5\n"
            "y_bytes{a=\"2\"} 1e+300\n"
            "y_bytes{a=\"3\"} -Inf\n"
            "y_bytes{a=\"4\"} NaN\n"
            "y_bytes{a=\"5\"} 12345678\n");
  EXPECT_TRUE(testing::read_page(page).problems.empty());
}

// The reader below the other tests must itself notice what it is for.
TEST(ExpositionLint, RefusesWhatAScraperWould) {
  using testing::read_page;
  const std::string head = "# HELP x_total X.\n# TYPE x_total counter\n";
  EXPECT_TRUE(read_page(head + "x_total 1\n").problems.empty());
  EXPECT_FALSE(read_page(head + "x_total 1").problems.empty());
  EXPECT_FALSE(read_page(head + "x_total 1\nx_total 2\n").problems.empty());
  EXPECT_FALSE(read_page(head + "x_total{a=\"\"\"} 1\n").problems.empty());
  EXPECT_FALSE(read_page(head + "x_total{a=\"\\q\"} 1\n").problems.empty());
  EXPECT_FALSE(read_page(head + "y_total 1\n").problems.empty());
  EXPECT_FALSE(read_page(head + head).problems.empty());
  EXPECT_FALSE(read_page(head + "\n").problems.empty());
  EXPECT_FALSE(read_page("# TYPE x_total counter\nx_total 1\n").problems.empty());
  EXPECT_FALSE(read_page("# HELP x X.\n# TYPE x counter\nx 1\n").problems.empty());
}

}  // namespace
}  // namespace sluice::metrics
