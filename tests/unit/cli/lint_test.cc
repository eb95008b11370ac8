#include "cli/lint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace sluice::cli {
namespace {

/// A directory of this test's own, gone with it.
class LintTest : public ::testing::Test {
 protected:
  LintTest() : directory_(std::filesystem::temp_directory_path() / ("sluice_lint_" + unique_name())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  ~LintTest() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = directory_ / name;
    std::ofstream(path) << text;
    return path.string();
  }
  [[nodiscard]] std::string directory() const { return directory_.string(); }

 private:
  static std::string unique_name() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    return std::string(test->name()) + "_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "_" +
           std::to_string(::getpid());
  }
  std::filesystem::path directory_;
};

int run_lint(std::vector<std::string> paths, bool strict, std::string& out) {
  std::ostringstream stream;
  const int code = lint({.paths = std::move(paths), .strict = strict}, stream);
  out = stream.str();
  return code;
}

constexpr std::string_view kGood =
    "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: day, requests_per_unit: 1}\n";

TEST_F(LintTest, IsFriendlyWhenAllIsWell) {
  write("a.yaml", std::string(kGood));
  write("b.yaml", "domain: e\n");
  std::string out;
  EXPECT_EQ(run_lint({directory()}, true, out), 0);
  EXPECT_EQ(out, "2 files, 1 limit, no problems\n");
}

TEST_F(LintTest, TellsEntriesThatLeadNowhere) {
  write("a.yaml", std::string(kGood));
  std::filesystem::create_symlink("nowhere", directory() + "/b.yaml");
  std::filesystem::create_symlink("c.yaml", directory() + "/c.yaml");
  std::filesystem::create_symlink("nowhere", directory() + "/.hidden");
  std::filesystem::create_directory(directory() + "/deeper");
  std::string out;
  EXPECT_EQ(run_lint({directory()}, false, out), 1);
  EXPECT_EQ(out, directory() + "/b.yaml: error: cannot be read: it points to a file that does not exist\n" +
                     directory() + "/c.yaml: error: cannot be read: Too many levels of symbolic links\n" +
                     "1 file, 2 errors, 0 warnings\n");
}

TEST_F(LintTest, TellsTheSizeOfAFileThatIsTooLarge) {
  const std::string path = write("a.yaml", std::string(9'000'011, '#'));
  std::string out;
  EXPECT_EQ(run_lint({path}, false, out), 1);
  EXPECT_TRUE(out.starts_with(path + ": error: the file is 9000011 bytes long; at most 8388608 are read\n")) << out;
}

TEST_F(LintTest, DoesNotMissWhatIsMisspelt) {
  const std::string path =
      write("a.yaml", "domain: d\ndescriptors:\n  - {key: k, rate_limit: {unit: day, requests_per_units: 1}}\n");
  std::string out;
  EXPECT_EQ(run_lint({path}, false, out), 1);
  EXPECT_EQ(out, path +
                     ":3:38: error: unknown key \"requests_per_units\" in `rate_limit`; did you mean "
                     "`requests_per_unit`?\n1 file, 1 error, 0 warnings\n");
}

TEST_F(LintTest, TellsAllThatIsWrongInACalendar) {
  const std::string path =
      write("a.yaml",
            "domain: d\ndescriptors:\n  - key: k\n    rate_limit:\n      unit: month\n      requests_per_unit: 1\n"
            "      calendar: {timezone: Mars/X, anchor_day: 32}\n");
  std::string out;
  EXPECT_EQ(run_lint({path}, false, out), 1);
  EXPECT_NE(out.find("calendar.timezone: "), std::string::npos) << out;
  EXPECT_NE(out.find("`anchor_day` must be a whole number from 1 to 31, found"), std::string::npos) << out;
  EXPECT_NE(out.find("1 file, 2 errors, 0 warnings"), std::string::npos) << out;
}

TEST_F(LintTest, TellsAllErrorsOfAllFiles) {
  const std::string a = write("a.yaml", "domain: d\ndescriptor: []\n");
  const std::string b = write("b.yaml", "domain: d\ndescriptors: {}\n");
  std::string out;
  EXPECT_EQ(run_lint({directory()}, false, out), 1);
  EXPECT_EQ(out, a + ":2:1: error: unknown key \"descriptor\" at the top of the file; did you mean `descriptors`?\n" +
                     b + ":1:9: error: the domain \"d\" is already that of " + a + ":1:9; a domain is one file\n" + b +
                     ":2:14: error: `descriptors` must be a list, found a map\n2 files, 3 errors, 0 warnings\n");
}

TEST_F(LintTest, CountsWarningsAsErrorsOnlyWhenStrict) {
  const std::string a = write("a.yaml", "domain: d\nname: x\n");
  std::string out;
  EXPECT_EQ(run_lint({a}, false, out), 0);
  EXPECT_EQ(out, a + ":2:1: warning: `name` does nothing at the top of the file; it belongs in `rate_limit`\n"
                     "1 file, 0 limits, 0 errors, 1 warning\n");
  EXPECT_EQ(run_lint({a}, true, out), 1);
}

TEST_F(LintTest, NamesWhatCannotBeRead) {
  std::string out;
  EXPECT_EQ(run_lint({directory() + "/nowhere"}, false, out), 1);
  EXPECT_EQ(out, directory() + "/nowhere: error: no such file or directory\n0 files, 1 error, 0 warnings\n");
  EXPECT_EQ(run_lint({directory()}, false, out), 1);
  EXPECT_EQ(out, directory() +
                     ": error: expected policy files in this directory, found none\n0 files, 1 error, 0 warnings\n");
}

TEST_F(LintTest, LeavesOutHiddenFilesAndReadsEveryOther) {
  write(".hidden.yaml", "not a policy");
  write("limits.txt", std::string(kGood));
  std::filesystem::create_directories(directory() + "/sub");
  std::string out;
  EXPECT_EQ(run_lint({directory()}, true, out), 0);
  EXPECT_EQ(out, "1 file, 1 limit, no problems\n");
}

}  // namespace
}  // namespace sluice::cli
