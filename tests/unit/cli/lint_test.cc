#include "cli/lint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
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
  write("b.yaml", "domain: e\ndescriptors: [ { key: k, rate_limit: { unit: day, requests_per_unit: 1 } } ]\n");
  std::string out;
  EXPECT_EQ(run_lint({directory()}, true, out), 0);
  EXPECT_EQ(out, "2 files, 2 limits, no problems\n");
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
  const std::string a = write("a.yaml", std::string(kGood) + "name: x\n");
  std::string out;
  EXPECT_EQ(run_lint({a}, false, out), 0);
  EXPECT_EQ(out, a + ":5:1: warning: `name` does nothing at the top of the file; it belongs in `rate_limit`\n"
                     "1 file, 1 limit, 0 errors, 1 warning\n");
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

TEST_F(LintTest, PassesOverPipesAndSaysSo) {
  write("a.yaml", std::string(kGood));
  const std::string pipe = directory() + "/b.yaml";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string out;
  EXPECT_EQ(run_lint({directory()}, false, out), 0);
  EXPECT_EQ(out,
            pipe + ": warning: passed over: it is a pipe, not a regular file\n1 file, 1 limit, 0 errors, 1 warning\n");
  EXPECT_EQ(run_lint({pipe}, false, out), 1);
  EXPECT_EQ(out, pipe + ": error: cannot be read: it is a pipe, not a regular file\n0 files, 1 error, 0 warnings\n");
}

class LintAsEnvoyproxy : public LintTest {
 protected:
  int run(std::vector<std::string> paths, std::vector<std::string> environment) {
    std::ostringstream stream;
    const int code =
        lint({.paths = std::move(paths), .strict = false, .as_envoyproxy = true, .environment = std::move(environment)},
             stream);
    out_ = stream.str();
    return code;
  }
  std::string write_below(const std::string& folder, const std::string& name, const std::string& text) {
    std::filesystem::create_directories(directory() + "/" + folder);
    return write(folder + "/" + name, text);
  }
  std::string out_;
};

TEST_F(LintAsEnvoyproxy, ReadsFoldersBelowAndDotFilesAsServeDoes) {
  write("a.yaml", std::string(kGood));
  const std::string below = write_below("sub", "b.yaml", "foo: 1\n");
  EXPECT_EQ(run({directory()}, {}), 1);
  EXPECT_NE(out_.find(below + ":1:1: error: unknown key \"foo\""), std::string::npos) << out_;
  std::filesystem::remove(below);
  const std::string hidden = write(".a.yaml.swp", "foo: 1\n");
  EXPECT_EQ(run({directory()}, {}), 1);
  EXPECT_NE(out_.find(hidden), std::string::npos) << out_;
  EXPECT_EQ(run({directory()}, {"RUNTIME_IGNOREDOTFILES=true"}), 0) << out_;
}

TEST_F(LintAsEnvoyproxy, ADomainMayBeSpreadWhereTheEnvironmentSaysSo) {
  write("a.yaml", std::string(kGood));
  write("b.yaml", "domain: d\ndescriptors:\n  - key: l\n    rate_limit: {unit: day, requests_per_unit: 1}\n");
  EXPECT_EQ(run({directory()}, {}), 1);
  EXPECT_EQ(run({directory()}, {"MERGE_DOMAIN_CONFIG=true"}), 0) << out_;
  EXPECT_EQ(out_, "2 files, 2 limits, no problems\n");
}

TEST_F(LintAsEnvoyproxy, WithoutADirectoryTheEnvironmentNamesIt) {
  write_below("current/limits/config", "a.yaml", std::string(kGood));
  const std::string root = "RUNTIME_ROOT=" + directory() + "/current";
  EXPECT_EQ(run({}, {root, "RUNTIME_SUBDIRECTORY=limits"}), 0) << out_;
  EXPECT_EQ(run({}, {root, "RUNTIME_SUBDIRECTORY=limits", "RUNTIME_APPDIRECTORY=other"}), 1);
  EXPECT_EQ(out_, directory() +
                      "/current/limits: error: there is no policy file here, and nothing would be limited\n"
                      "0 files, 1 error, 0 warnings\n");
}

TEST_F(LintAsEnvoyproxy, PassesOverWhatIsNoFileAndSaysSo) {
  const std::string file = write_below("config", "a.yaml", std::string(kGood));
  const std::string pipe = directory() + "/config/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_directory_symlink("..", directory() + "/config/..data");
  std::filesystem::create_directory_symlink("..", directory() + "/config/up");
  const std::string root = "RUNTIME_ROOT=" + directory();
  EXPECT_EQ(run({}, {root}), 0);
  EXPECT_NE(out_.find(pipe + ": warning: passed over: it is a pipe, not a regular file\n"), std::string::npos) << out_;
  EXPECT_NE(out_.find("/config/up: warning: passed over: it is a link to a directory, which is not followed\n"),
            std::string::npos)
      << out_;
  EXPECT_NE(out_.find("1 file, 1 limit, 0 errors, 2 warnings\n"), std::string::npos) << out_;
  std::filesystem::remove(file);
  EXPECT_EQ(run({}, {root}), 1);
  EXPECT_NE(out_.find("there is no policy file here"), std::string::npos) << out_;
}

TEST_F(LintAsEnvoyproxy, ASlashInFrontOfAPartOfThePathMeansNothing) {
  write_below("limits/config", "a.yaml", std::string(kGood));
  const std::string root = "RUNTIME_ROOT=" + directory() + "/";
  EXPECT_EQ(run({}, {root, "RUNTIME_SUBDIRECTORY=/limits/"}), 0) << out_;
  EXPECT_EQ(
      run({}, {root, "RUNTIME_SUBDIRECTORY=//limits", "RUNTIME_APPDIRECTORY=/config", "RUNTIME_WATCH_ROOT=false"}), 0)
      << out_;
  EXPECT_EQ(run({}, {root, "RUNTIME_SUBDIRECTORY=/gone/../limits"}), 0) << out_;
  EXPECT_EQ(out_, "1 file, 1 limit, no problems\n");
}

TEST_F(LintAsEnvoyproxy, TellsWhatIsWrongWithTheEnvironment) {
  write("a.yaml", std::string(kGood));
  EXPECT_EQ(run({directory()}, {"MERGE_DOMAIN_CONFIG=maybe"}), 1);
  EXPECT_NE(out_.find("environment: error: MERGE_DOMAIN_CONFIG: expected true or false, found 'maybe'\n"),
            std::string::npos)
      << out_;
  EXPECT_EQ(run({directory() + "/nowhere"}, {}), 1);
}

TEST_F(LintAsEnvoyproxy, WhatServeRefusesIsAnError) {
  write("a.yaml", std::string(kGood));
  const std::vector<std::string> good{"USE_STATSD=false", "USE_PROMETHEUS=true", "REDIS_SOCKET_TYPE=tcp",
                                      "REDIS_URL=127.0.0.1:6379", "PROMETHEUS_ADDR=:9090"};
  EXPECT_EQ(run({directory()}, good), 0) << out_;
  EXPECT_EQ(run({directory()}, {}), 0) << out_;
  for (const std::string bad : {"REDIS_TYPE=foo", "REDIS_SOCKET_TYPE=udp", "PROMETHEUS_ADDR=39090",
                                "REDIS_URL=", "REDIS_URL=127.0.0.1:port", "PORT=70000", "SLUICE_LOG_LEVEL=loud"}) {
    std::vector<std::string> environment = good;
    std::erase_if(environment, [&](const std::string& line) {
      return line.substr(0, line.find('=')) == bad.substr(0, bad.find('='));
    });
    environment.emplace_back(bad);
    EXPECT_EQ(run({directory()}, environment), 1) << bad;
    EXPECT_NE(out_.find("environment: error: "), std::string::npos) << bad << '\n' << out_;
  }
}

}  // namespace
}  // namespace sluice::cli
