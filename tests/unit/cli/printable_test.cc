#include "cli/printable.h"

#include <gtest/gtest.h>

#include <ostream>
#include <sstream>

namespace {

using sluice::cli::json_text;
using sluice::cli::printable;
using sluice::cli::SafeOutput;
using sluice::cli::without_controls;

TEST(Printable, NamesAreShownAsTheyAreUnlessTheyWouldBeObeyed) {
  EXPECT_EQ(printable("sluice:{42}shop/user;tb"), "sluice:{42}shop/user;tb");
  EXPECT_EQ(printable("größe€😀"), "größe€😀");
  EXPECT_EQ(printable("a\x1b[2Jb\r\n\t"), "a\\x1b[2Jb\\x0d\\x0a\\x09");
  EXPECT_EQ(printable("\x7f\xff\xc3"), "\\x7f\\xff\\xc3");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");           // CSI, in one character
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // turns what follows around
  // Not to be mistaken for an escape.
  EXPECT_EQ(printable("\\x1b"), "\\\\x1b");
}

TEST(Printable, LinesKeepTheirEndsAndStayJson) {
  EXPECT_EQ(without_controls("one\ttwo\n"), "one\ttwo\n");
  EXPECT_EQ(without_controls("\x1b]0;x\x07\r"), "\\u001b]0;x\\u0007\\u000d");
  EXPECT_EQ(without_controls("\xc2\x9b\xff"), "\\u009b\\ufffd");
  EXPECT_EQ(json_text("a\"\n\x1b\xff\x7f"), R"("a\"\u000a\u001b\ufffd\u007f")");
}

TEST(Printable, AStreamPassesWholeLinesOn) {
  std::stringbuf to;
  {
    SafeOutput safe(to);
    std::ostream out(&safe);
    out << "a\xe2\x82";
    EXPECT_EQ(to.str(), "");
    out << "\xac" << '\x1b' << "\nrest";
    EXPECT_EQ(to.str(), "a€\\u001b\n");
    out << std::flush;
    EXPECT_EQ(to.str(), "a€\\u001b\nrest");
    out << "end\xff";
  }
  EXPECT_EQ(to.str(), "a€\\u001b\nrestend\\ufffd");
}

TEST(Printable, AStreamTellsThatNobodyReads) {
  class Full final : public std::streambuf {};
  Full full;
  SafeOutput safe(full);
  std::ostream out(&safe);
  out << "a\n";
  EXPECT_FALSE(out.flush());
}

}  // namespace
