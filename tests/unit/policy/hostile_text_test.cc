// Texts made to break a loader: each gets a clear error, soon, and never takes the process down.
#include <gtest/gtest.h>

#include <string>

#include "policy/policy.h"
#include "tests/unit/policy/policy_text.h"
#include "yaml/tree.h"

namespace sluice::policy {
namespace {

using namespace std::string_literals;

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(HostileText, DeepNesting) {
  EXPECT_NE(findings_of("domain: " + repeated("[", 100'000)).find("nested more than 200 levels deep"),
            std::string::npos);
  EXPECT_NE(findings_of("domain: " + repeated("[", 300) + repeated("]", 300)).find("nested more than 200 levels deep"),
            std::string::npos);
  EXPECT_EQ(findings_of("domain: " + repeated("{a: ", 100'000)),
            "p.yaml:1:802: error: nested more than 200 levels deep\n");
  std::string block;
  for (int i = 0; i < 1'000; ++i) block += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_NE(findings_of(block).find("nested more than 200 levels deep"), std::string::npos) << findings_of(block);
  EXPECT_NE(findings_of(repeated("- ", 100'000)).find("nested more than 200 levels deep"), std::string::npos);
  EXPECT_NE(findings_of(repeated("? ", 100'000)).find("nested more than 200 levels deep"), std::string::npos);
}

TEST(HostileText, TokensThatNothingBeginsWith) {
  EXPECT_EQ(findings_of(","), "p.yaml:1:1: error: not valid YAML: nothing can begin with this\n");
  EXPECT_EQ(findings_of("---\n,"), "p.yaml:2:1: error: not valid YAML: nothing can begin with this\n");
}

TEST(HostileText, AliasBomb) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string n = std::to_string(i);
    const std::string below = "*a" + std::to_string(i - 1);
    bomb.append("a").append(n).append(": &a").append(n).append(" [").append(below);
    bomb.append(repeated(", " + below, 9)).append("]\n");
  }
  EXPECT_EQ(findings_of(bomb), "p.yaml:6:55: error: more than 1000000 values, counting what aliases stand for\n");
}

TEST(HostileText, AliasThatHoldsItself) {
  EXPECT_EQ(findings_of("domain: &a [*a]"),
            "p.yaml:1:13: error: an alias may not stand inside of what it stands for\n");
  EXPECT_EQ(findings_of("domain: &a {b: *a}"),
            "p.yaml:1:16: error: an alias may not stand inside of what it stands for\n");
  EXPECT_NE(findings_of("domain: *nobody").find("not valid YAML"), std::string::npos);
}

TEST(HostileText, AliasesAddToTheDepth) {
  std::string text;
  for (int i = 0; i < 30; ++i) {
    const std::string below = i == 0 ? "x"s : "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " " + repeated("[", 10) + below + repeated("]", 10) +
            "\n";
  }
  EXPECT_NE(findings_of(text).find("nested more than 200 levels deep"), std::string::npos);
}

TEST(HostileText, MergesThatGrow) {
  std::string text = "m0: &m0 {";
  for (int i = 0; i < 1'000; ++i) text += "k" + std::to_string(i) + ": 1, ";
  text += "}\n";
  for (int i = 1; i < 2'000; ++i) {
    text += "m" + std::to_string(i) + ": &m" + std::to_string(i) + " {<<: *m" + std::to_string(i - 1) + ", x" +
            std::to_string(i) + ": 1}\n";
  }
  EXPECT_NE(findings_of(text).find("more than 1000000 values"), std::string::npos);
  EXPECT_EQ(findings_of("domain: {<<: 5}"), "p.yaml:1:14: error: `<<` takes a map or a list of maps\n");
}

TEST(HostileText, LongFilesAndScalars) {
  EXPECT_EQ(findings_of("domain: " + std::string(10U << 20U, 'x')),
            "p.yaml: error: the file is 10485768 bytes long; at most 8388608 are read\n");
  EXPECT_NE(load_text("domain: " + std::string(2'000'000, 'x')).policy, nullptr);
  EXPECT_NE(load_text("domain: \"" + std::string(2'000'000, 'x') + "\"").policy, nullptr);
  EXPECT_NE(load_text("domain: |\n  " + std::string(2'000'000, 'x') + "\n").policy, nullptr);
  EXPECT_NE(load_text("domain: d\n" + repeated("# comment\n", 200'000)).policy, nullptr);
  EXPECT_NE(load_text("domain: d\n" + repeated("\n", 2'000'000)).policy, nullptr);
  EXPECT_NE(load_text("domain: \"" + repeated("a\n\n", 300'000) + "\"").policy, nullptr);
}

TEST(HostileText, ManyValues) {
  EXPECT_NE(findings_of("domain: [" + repeated("a,", 2'000'000) + "]").find("more than 1000000 values"),
            std::string::npos);
  const std::string keys = findings_of("domain: d\n" + repeated("a: 1\n", 50'000));
  EXPECT_NE(keys.find("p.yaml: error: "), std::string::npos) << keys.substr(0, 1'000);
  EXPECT_LT(keys.size(), 1'000'000U);
}

TEST(HostileText, ManyFindingsAreCut) {
  const std::string findings = findings_of("domain: d\ndescriptors:\n" + repeated("  - x: 1\n", 10'000));
  EXPECT_NE(findings.find("\np.yaml: error: 19000 more findings are not shown\n"), std::string::npos)
      << findings.substr(0, 500);
}

TEST(HostileText, BytesThatAreNoText) {
  EXPECT_EQ(findings_of("domain: a\0b"s), "p.yaml:1:10: error: the control character 0x00 is not allowed in YAML\n");
  EXPECT_EQ(findings_of("domain: a\n# \x04\nunknown: 1\n"),
            "p.yaml:2:3: error: the control character 0x04 is not allowed in YAML\n");
  EXPECT_EQ(findings_of("domain: \x7F"), "p.yaml:1:9: error: the control character 0x7F is not allowed in YAML\n");
  EXPECT_EQ(findings_of("domain: \xC2\x80"), "p.yaml:1:9: error: a control character that YAML does not allow\n");
  for (const std::string& bad : {"\xFF"s, "\xC0\x80"s, "\xC3"s, "\xE2\x82"s, "\xED\xA0\x80"s, "\xF4\x90\x80\x80"s,
                                 "\xF0\x80\x80\x80"s, "\xE0\x80\x80"s, "\x80"s}) {
    EXPECT_NE(findings_of("domain: " + bad).find("is not valid UTF-8 here"), std::string::npos);
  }
  EXPECT_EQ(findings_of("\xFF\xFE"
                        "d\0"s),
            "p.yaml:1:1: error: the file is UTF-16; expected UTF-8\n");
  EXPECT_NE(load_text("domain: 日本語\n").policy, nullptr);
}

TEST(HostileText, YamlThatIsBroken) {
  for (const std::string& text : {"domain: [a"s, "domain: \"a"s, "a: b: c"s, "domain: {"s, "%YAML 9.9\n---\na"s,
                                  "&a &b c"s, "domain: !<tag:x"s, "]"s, "a:\n - b\n c"s, "? ? ?\n: :"s, "domain: @x"s,
                                  "domain: 'x"s, "|"s, R"(domain: "\q")"s, R"(domain: "\UFFFFFFFF")"s}) {
    const Loaded loaded = load_text(text);
    EXPECT_EQ(loaded.policy, nullptr) << text;
    ASSERT_FALSE(loaded.findings.empty()) << text;
  }
}

}  // namespace
}  // namespace sluice::policy
