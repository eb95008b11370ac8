#include "policy/first_document.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::policy {
namespace {

void expect(std::string_view text, std::string_view first, int rest_line) {
  const FirstDocument found = first_document(text);
  EXPECT_EQ(found.text, first) << text;
  EXPECT_EQ(found.rest_line, rest_line) << text;
}

TEST(FirstDocument, IsAllOfATextWithoutAnother) {
  for (const std::string_view text : {"", "a: 1", "a: 1\n", "# c\n%YAML 1.1\n---\na: 1\n", "\xEF\xBB\xBF---\na: 1\n",
                                      "a: |\n  ---\n  b\n", "a: --- b\n", "a: 1\n---x: 2\n", "---\r\na: 1\r\n"}) {
    expect(text, text, 0);
  }
}

TEST(FirstDocument, EndsAtTheNextMark) {
  expect("a: 1\n---\nb: 2\n", "a: 1\n", 3);
  expect("--- {a: 1}\n--- {b: 2}\n", "--- {a: 1}\n", 2);
  expect("a: 1\r\n---\r\nb: 2\r\n", "a: 1\r\n", 3);
  expect("a: |\n  text\n...\n\n# c\n}{", "a: |\n  text\n", 6);
  expect("---\n---\na: 1\n", "---\n", 3);
}

TEST(FirstDocument, NothingBehindItIsNoOther) {
  expect("a: 1\n---\n", "a: 1\n", 0);
  expect("a: 1\n...\n---\n# c\n", "a: 1\n", 0);
}

}  // namespace
}  // namespace sluice::policy
