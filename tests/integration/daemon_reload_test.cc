// The real binary, and its policy changed under it in all the ways in which files are changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"
#include "tests/integration/support/reloads.h"

namespace {

namespace fs = std::filesystem;
using sluice::test::Daemon;
using sluice::test::has_reloaded;
using sluice::test::HttpClient;
using sluice::test::metric;
using sluice::test::TempFolder;
using testing::HasSubstr;
using testing::Not;

std::string policy_of(int requests, const std::string& domain = "shop") {
  return "domain: " + domain +
         "\ndescriptors:\n  - key: user\n    rate_limit: { name: Daily, algorithm: token_bucket, period: 366d, "
         "requests_per_unit: " +
         std::to_string(requests) + " }\n";
}

// What somebody never seen would be told.
std::string limit_of(Daemon& daemon, const std::string& domain = "shop") {
  const auto answer =
      HttpClient(daemon.http()).post("/v1/peek", R"({"domain":")" + domain + R"(","descriptors":[{"user":"new"}]})");
  const std::size_t at = answer.body.find("\"limit\":");
  return at == std::string::npos ? "none" : answer.body.substr(at + 8, answer.body.find(',', at) - at - 8);
}

// A volume of Kubernetes: files are links through `..data`, which is turned to a new folder.
class ConfigMap {
 public:
  explicit ConfigMap(const TempFolder& folder) : root_(folder.path() / "mounted") { fs::create_directory(root_); }
  void publish(const std::string& text) {
    const std::string version = "..2026_" + std::to_string(++version_);
    fs::create_directory(root_ / version);
    std::ofstream(root_ / version / "p.yaml") << text;
    fs::create_symlink(version, root_ / "..data_tmp");
    fs::rename(root_ / "..data_tmp", root_ / "..data");
    if (version_ == 1) fs::create_symlink("..data/p.yaml", root_ / "p.yaml");
    if (version_ > 1) fs::remove_all(root_ / ("..2026_" + std::to_string(version_ - 1)));
  }
  [[nodiscard]] const fs::path& root() const { return root_; }

 private:
  fs::path root_;
  int version_ = 0;
};

TEST(DaemonReload, AFileWrittenInPlace) {
  const TempFolder folder;
  Daemon daemon(folder.write("p.yaml", policy_of(2)));
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  EXPECT_EQ(limit_of(daemon), "2");
  folder.write("p.yaml", policy_of(5));
  ASSERT_TRUE(has_reloaded(daemon, "1")) << daemon.process().output();
  EXPECT_EQ(limit_of(daemon), "5");
}

TEST(DaemonReload, AFileRenamedIntoPlaceAgainAndAgain) {
  const TempFolder folder;
  Daemon daemon(folder.write("p.yaml", policy_of(2)));
  ASSERT_TRUE(daemon.ready());
  for (int i = 1; i <= 3; ++i) {
    fs::rename(folder.write("new", policy_of(10 * i)), folder.path() / "p.yaml");
    ASSERT_TRUE(has_reloaded(daemon, std::to_string(i))) << daemon.process().output();
    EXPECT_EQ(limit_of(daemon), std::to_string(10 * i));
  }
}

TEST(DaemonReload, FilesThatComeToADirectoryAndGo) {
  const TempFolder folder;
  folder.write("shop.yaml", policy_of(2));
  Daemon daemon(folder.path().string());
  ASSERT_TRUE(daemon.ready());
  EXPECT_EQ(limit_of(daemon, "blog"), "none");
  folder.write("blog.yaml", policy_of(7, "blog"));
  ASSERT_TRUE(has_reloaded(daemon, "1")) << daemon.process().output();
  EXPECT_EQ(limit_of(daemon, "blog"), "7");
  EXPECT_EQ(limit_of(daemon), "2");
  fs::remove(folder.path() / "blog.yaml");
  ASSERT_TRUE(has_reloaded(daemon, "2"));
  EXPECT_EQ(limit_of(daemon, "blog"), "none");
}

TEST(DaemonReload, AFolderThatIsReplaced) {
  const TempFolder folder;
  fs::create_directories(folder.path() / "policies");
  folder.write("policies/p.yaml", policy_of(2));
  Daemon daemon((folder.path() / "policies").string());
  ASSERT_TRUE(daemon.ready());
  fs::create_directories(folder.path() / "next");
  folder.write("next/p.yaml", policy_of(3));
  fs::rename(folder.path() / "policies", folder.path() / "old");
  fs::rename(folder.path() / "next", folder.path() / "policies");
  const auto is_three = [&] { return limit_of(daemon) == "3"; };
  const auto deadline = std::chrono::steady_clock::now() + sluice::test::kPatience;
  while (!is_three() && std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_TRUE(is_three()) << daemon.process().output();
}

TEST(DaemonReload, AConfigMapGivenAsADirectory) {
  const TempFolder folder;
  ConfigMap mounted(folder);
  mounted.publish(policy_of(2));
  Daemon daemon(mounted.root().string());
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  for (int i = 1; i <= 3; ++i) {
    mounted.publish(policy_of(10 * i));
    ASSERT_TRUE(has_reloaded(daemon, std::to_string(i))) << daemon.process().output();
    EXPECT_EQ(limit_of(daemon), std::to_string(10 * i));
  }
}

TEST(DaemonReload, AConfigMapGivenAsAFileThroughAnotherLink) {
  const TempFolder folder;
  ConfigMap mounted(folder);
  mounted.publish(policy_of(2));
  fs::create_directory_symlink("mounted", folder.path() / "etc");
  Daemon daemon((folder.path() / "etc" / "p.yaml").string());
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  mounted.publish(policy_of(4));
  ASSERT_TRUE(has_reloaded(daemon, "1")) << daemon.process().output();
  EXPECT_EQ(limit_of(daemon), "4");
}

// Of two changes the first changes nothing: were it counted, the second would be the third.
TEST(DaemonReload, JudgesByContent) {
  const TempFolder folder;
  Daemon daemon(folder.write("p.yaml", policy_of(2)));
  ASSERT_TRUE(daemon.ready());
  folder.write("p.yaml", policy_of(2));
  fs::last_write_time(folder.path() / "p.yaml", fs::file_time_type::clock::now());
  fs::rename(folder.write("new", policy_of(2)), folder.path() / "p.yaml");
  fs::rename(folder.write("new", policy_of(3)), folder.path() / "p.yaml");
  ASSERT_TRUE(has_reloaded(daemon, "1"));
  fs::rename(folder.write("new", policy_of(3)), folder.path() / "p.yaml");
  fs::rename(folder.write("new", policy_of(4)), folder.path() / "p.yaml");
  ASSERT_TRUE(has_reloaded(daemon, "2"));
  EXPECT_EQ(limit_of(daemon), "4");
}

TEST(DaemonReload, SwitchedOffItWaitsForTheSignal) {
  const TempFolder folder;
  Daemon daemon(folder.write("p.yaml", policy_of(2)), {"--policy_watch", "false"});
  ASSERT_TRUE(daemon.ready());
  folder.write("p.yaml", policy_of(5));
  daemon.process().signal(SIGHUP);
  ASSERT_TRUE(has_reloaded(daemon, "1"));
  EXPECT_EQ(limit_of(daemon), "5");
}

TEST(DaemonReload, WhatIsWrongIsRefusedWholeAndToldEverywhere) {
  const TempFolder folder;
  folder.write("a.yaml", policy_of(2));
  const std::string bad = folder.write("b.yaml", policy_of(7, "blog"));
  Daemon daemon(folder.path().string());
  ASSERT_TRUE(daemon.ready());
  EXPECT_EQ(HttpClient(daemon.http()).get("/healthcheck").body, "OK");
  EXPECT_EQ(metric(daemon, "sluice_policy_refused"), "0");

  // Of a set of files one is wrong, in two places: none is taken.
  const std::string nothing_of_it = "domain: blog\ndescriptors:\n  - key: user\n    rate_limits: {}\n    shadow: 1\n";
  fs::rename(folder.write(".new", nothing_of_it), bad);
  ASSERT_TRUE(has_reloaded(daemon, "1", "refused"));
  EXPECT_EQ(limit_of(daemon), "2");
  EXPECT_EQ(limit_of(daemon, "blog"), "7");
  const std::string reason = bad + ":4:5: error: unknown key \"rate_limits\"";
  EXPECT_TRUE(daemon.process().has_printed(reason));
  EXPECT_EQ(metric(daemon, "sluice_policy_refused"), "1");
  EXPECT_THAT(
      HttpClient(daemon.http()).get("/metrics").body,
      testing::AllOf(HasSubstr("sluice_policy_refusal_info{reason=\"" + bad + ":4:5: error: unknown key \\\"…\\\""),
                     HasSubstr("(and 1 more)")));
  for (const std::string& address : {daemon.http(), daemon.admin()}) {
    const auto health = HttpClient(address).get("/healthcheck");
    EXPECT_EQ(health.status, 200);
    EXPECT_THAT(health.body, testing::StartsWith("OK\nthe policy's files were refused"));
    // What stands in the file is for the log alone.
    EXPECT_THAT(health.body,
                HasSubstr(bad + ":4:5: error: unknown key \"…\" in a descriptor; did you mean `rate_limit`?"));
    EXPECT_THAT(health.body, Not(HasSubstr("rate_limits")));
  }

  fs::rename(folder.write(".new", policy_of(8, "blog")), bad);
  ASSERT_TRUE(has_reloaded(daemon, "1"));
  EXPECT_EQ(limit_of(daemon, "blog"), "8");
  EXPECT_EQ(metric(daemon, "sluice_policy_refused"), "0");
  EXPECT_THAT(HttpClient(daemon.http()).get("/metrics").body, Not(HasSubstr("sluice_policy_refusal_info{")));
  EXPECT_EQ(HttpClient(daemon.http()).get("/healthcheck").body, "OK");
}

TEST(DaemonReload, AMissingFileIsRefusedUntilItIsBack) {
  const TempFolder folder;
  const std::string policy = folder.write("p.yaml", policy_of(2));
  Daemon daemon(policy);
  ASSERT_TRUE(daemon.ready());
  fs::remove(policy);
  ASSERT_TRUE(has_reloaded(daemon, "1", "refused"));
  EXPECT_TRUE(daemon.process().has_printed("no such file or directory"));
  EXPECT_EQ(limit_of(daemon), "2");
  folder.write("p.yaml", policy_of(3));
  ASSERT_TRUE(has_reloaded(daemon, "1"));
  EXPECT_EQ(limit_of(daemon), "3");
}

struct Shape {
  std::string_view name;
  std::string text;
  std::string_view refused;  // empty: it is read
};

// What editors and tools make of a policy is read, or refused with a word that helps.
TEST(DaemonReload, FilesOfAllShapes) {
  const std::string plain = policy_of(6);
  std::string crlf;
  for (const char c : plain) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  std::string indented;
  for (std::size_t begin = 0; begin < plain.size();) {
    const std::size_t end = plain.find('\n', begin) + 1;
    indented += "    " + plain.substr(begin, end - begin);
    begin = end;
  }
  const std::vector<Shape> shapes{
      {"plain", plain, ""},
      {"crlf", crlf, ""},
      {"byte order mark", "\xEF\xBB\xBF" + plain, ""},
      {"anchors",
       "domain: shop\ndescriptors:\n  - key: other\n    rate_limit: &six { algorithm: token_bucket, period: 366d, "
       "requests_per_unit: 6 }\n  - key: user\n    rate_limit: { <<: *six, name: Six }\n",
       ""},
      {"flow style",
       R"({domain: shop, descriptors: [{key: user, rate_limit: {algorithm: gcra, period: 366d, requests_per_unit: 6}}]})",
       ""},
      {"json",
       R"({"domain":"shop","descriptors":[{"key":"user","rate_limit":{"algorithm":"gcra","period":"366d","requests_per_unit":6}}]})",
       ""},
      {"a document marker", "---\n" + plain + "...\n", ""},
      {"tabs after values",
       "domain: shop\t# a tab\ndescriptors: [{key: user,\trate_limit: {algorithm: gcra, period: "
       "366d, requests_per_unit: 6}}]\n",
       ""},
      {"tabs in indentation", "domain: shop\ndescriptors:\n\t- key: user\n", ":3:1: error: a tab in the indentation"},
      {"documents", plain + "---\n" + policy_of(9, "blog"), "expected one YAML document, found 2"},
      {"ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: limits }\ndata:\n  p.yaml: |\n" + indented,
       "this is a Kubernetes object; expected the policy itself"},
      {"UTF-16",
       std::string("\xFF\xFE"
                   "d\0o\0",
                   6),
       "the file is UTF-16; expected UTF-8"},
      {"nothing", "", "the file is empty"},
  };
  const TempFolder folder;
  Daemon daemon(folder.write("p.yaml", policy_of(1)));
  ASSERT_TRUE(daemon.ready());
  int good = 0;
  int bad = 0;
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.name);
    fs::rename(folder.write("new", policy_of(1)), folder.path() / "p.yaml");
    if (&shape != &shapes.front()) {
      ASSERT_TRUE(has_reloaded(daemon, std::to_string(++good))) << daemon.process().output();
    }
    ASSERT_EQ(limit_of(daemon), "1");
    fs::rename(folder.write("new", shape.text), folder.path() / "p.yaml");
    if (shape.refused.empty()) {
      ASSERT_TRUE(has_reloaded(daemon, std::to_string(++good))) << daemon.process().output();
      EXPECT_EQ(limit_of(daemon), "6");
    } else {
      ASSERT_TRUE(has_reloaded(daemon, std::to_string(++bad), "refused")) << daemon.process().output();
      EXPECT_TRUE(daemon.process().has_printed(shape.refused)) << daemon.process().output();
      EXPECT_EQ(limit_of(daemon), "1");
    }
  }
}

// A policy of many limits, of which every version differs.
std::string many_limits(int version) {
  std::string text = "domain: shop\ndescriptors:\n";
  for (int i = 0; i < 1'000; ++i) {
    text += "  - { key: k" + std::to_string(i) + ", rate_limit: { name: L" + std::to_string(i) +
            ", unit: second, requests_per_unit: " + std::to_string(1'000'000 + version) +
            ", algorithm: token_bucket } }\n";
  }
  return text;
}

struct Asked {
  int errors = 0;
  std::vector<std::chrono::nanoseconds> times;

  [[nodiscard]] std::chrono::nanoseconds p99() {
    std::ranges::sort(times);
    return times[times.size() * 99 / 100];
  }
};

// Asks at a rate that leaves half of one thread's time, for so long; what comes late counts from when it was due.
Asked ask_for(Daemon& daemon, std::chrono::milliseconds time, const std::function<void()>& each_second) {
  Asked asked;
  HttpClient client(daemon.http());
  constexpr auto pause = std::chrono::microseconds(500);
  const auto begin = std::chrono::steady_clock::now();
  auto due = begin;
  auto next_second = begin;
  for (int i = 0; due < begin + time; ++i, due += pause) {
    if (due >= next_second) {
      next_second += std::chrono::seconds(1);
      each_second();
    }
    std::this_thread::sleep_until(due);
    const std::string key = "k" + std::to_string(i % 1'000);
    const auto answer = client.post("/v1/check", R"({"domain":"shop","descriptors":[{")" + key + R"(":"1"}]})");
    asked.times.push_back(std::chrono::steady_clock::now() - due);
    if (answer.status != 200 || answer.body.find(R"("limit_name":"L)") == std::string::npos) ++asked.errors;
  }
  return asked;
}

// SLUICE_RELOAD_SECONDS=60 is the long form, which looks at latency, too.
TEST(DaemonReload, LosesAndDelaysNoDecision) {
  const char* const long_form = std::getenv("SLUICE_RELOAD_SECONDS");
  const auto time = long_form != nullptr ? std::chrono::seconds(std::atoi(long_form)) : std::chrono::seconds(2);
  const TempFolder folder;
  int version = 0;
  Daemon daemon(folder.write("p.yaml", many_limits(version)), {"--threads", "1"});
  ASSERT_TRUE(daemon.ready());
  Asked calm = ask_for(daemon, time, [] {});
  Asked reloading =
      ask_for(daemon, time, [&] { fs::rename(folder.write("new", many_limits(++version)), folder.path() / "p.yaml"); });
  EXPECT_EQ(calm.errors + reloading.errors, 0);
  ASSERT_TRUE(has_reloaded(daemon, std::to_string(version)));
  EXPECT_EQ(metric(daemon, "sluice_policy_reloads_total{result=\"refused\"}"), "0");
  std::cout << version << " reloads; p99 " << calm.p99().count() / 1'000 << " us without, "
            << reloading.p99().count() / 1'000 << " us with\n";
  if (long_form != nullptr) {
    EXPECT_LE(reloading.p99() * 2, calm.p99() * 3);
  }
}

}  // namespace
