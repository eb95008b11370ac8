// What becomes of counters when the numbers of their limit change, in memory and in Redis, seen through the daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/integration/redis_server.h"
#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"
#include "tests/integration/support/reloads.h"
#include "tests/integration/support/verbs.h"

namespace {

namespace fs = std::filesystem;
using sluice::test::Daemon;
using sluice::test::has_reloaded;
using sluice::test::HttpClient;
using sluice::test::member;
using sluice::test::TempFolder;
using sluice::testing::RedisServer;
using testing::HasSubstr;

std::string policy_of(const std::string& limit) {
  return "domain: shop\nleases: true\ndescriptors:\n  - key: user\n    rate_limit: { " + limit + " }\n";
}

struct Change {
  std::string name;
  std::string before;
  int used;  // so many are allowed before
  std::string after;
  int then;  // and so many after, but not one more
};

// Nothing comes back while a test runs, unless a row is about that.
std::vector<Change> changes() {
  const std::string window = "algorithm: fixed_window, align: first_hit, period: 20d, requests_per_unit: ";
  const std::string log = "algorithm: sliding_log, period: 20d, requests_per_unit: ";
  const std::string sliding = "algorithm: sliding_window, period: 366d, requests_per_unit: ";
  const std::string bucket = "algorithm: token_bucket, period: 20d, ";
  const std::string queue = "algorithm: leaky_bucket, period: 20d, requests_per_unit: 1, queue: ";
  return {
      {"WindowRaised", window + "2", 2, window + "5", 3},
      {"WindowLowered", window + "5", 3, window + "2", 0},
      {"WindowLoweredNotBelowWhatIsTaken", window + "5", 1, window + "2", 1},
      {"WindowOfAnotherPeriod", window + "2", 2,
       "algorithm: fixed_window, align: first_hit, period: 10d, requests_per_unit: 2", 2},
      {"LogOfAnotherPeriodKeepsWhatIsInIt", log + "3", 2, "algorithm: sliding_log, period: 10d, requests_per_unit: 3",
       1},
      {"SlidingOfAnotherPeriod", sliding + "2", 2, "algorithm: sliding_window, period: 365d, requests_per_unit: 2", 2},
      {"BucketOfAnotherPeriodKeepsWhatIsThere", bucket + "requests_per_unit: 1, burst: 5", 3,
       "algorithm: token_bucket, period: 10d, requests_per_unit: 1, burst: 5", 2},
      {"LogRaised", log + "2", 2, log + "5", 3},
      {"LogLowered", log + "5", 3, log + "2", 0},
      {"SlidingRaised", sliding + "2", 2, sliding + "5", 3},
      {"SlidingLowered", sliding + "5", 3, sliding + "2", 0},
      {"BucketOfGreaterBurstKeepsWhatIsMissing", bucket + "requests_per_unit: 1, burst: 2", 2,
       bucket + "requests_per_unit: 1, burst: 5", 0},
      {"BucketOfGreaterBurstKeepsWhatIsThere", bucket + "requests_per_unit: 1, burst: 5", 3,
       bucket + "requests_per_unit: 1, burst: 9", 2},
      {"BucketOfLesserBurstIsCut", bucket + "requests_per_unit: 1, burst: 9", 1,
       bucket + "requests_per_unit: 1, burst: 3", 3},
      {"QueueLengthened", queue + "1", 2, queue + "3", 2},
      {"QueueShortened", queue + "3", 2, queue + "1", 0},
      {"AnotherAlgorithm", window + "2", 2, bucket + "requests_per_unit: 1, burst: 4", 4},
      {"AnotherName", window + "3", 2, window + "3, name: Three", 1},
  };
}

struct ReservedChange {
  std::string name;
  std::string before;
  std::string after;
  bool kept;  // what was reserved was taken from the counter that there is now
};

std::vector<ReservedChange> reserved_changes() {
  const std::string window = "algorithm: fixed_window, align: first_hit, period: 20d, requests_per_unit: ";
  const std::string log = "algorithm: sliding_log, requests_per_unit: 10, period: ";
  const std::string sliding = "algorithm: sliding_window, requests_per_unit: 10, period: 366d";
  const std::string bucket = "algorithm: token_bucket, requests_per_unit: 1, burst: 10, period: ";
  return {
      {"AWindowRaised", window + "10", window + "20", true},
      {"AWindowOfAnotherPeriod", window + "10",
       "algorithm: fixed_window, align: first_hit, period: 10d, requests_per_unit: 10", false},
      {"AWindowOfACalendar", "algorithm: fixed_window, unit: year, requests_per_unit: 10",
       "algorithm: fixed_window, requests_per_unit: 10, unit: year, calendar: { timezone: UTC }", false},
      {"ABucketOfAnotherPeriod", bucket + "20d", bucket + "40d", true},
      {"ALogOfAnotherPeriod", log + "20d", log + "40d", true},
      {"ASlidingWindowOfOtherSlots", sliding, sliding + ", slots: 2", false},
      {"AnotherAlgorithm", bucket + "20d", log + "20d", false},
      {"AnotherAlgorithmOfWindows", window + "10", sliding, false},
      {"ALimitOfConcurrency", bucket + "20d", "algorithm: concurrency, requests_per_unit: 10", false},
  };
}

class Conversion : public testing::Test {
 protected:
  void run(const std::vector<std::string>& flags) {
    const std::string file = folder_.write("p.yaml", policy_of("period: 20d, requests_per_unit: 1"));
    Daemon daemon(file, flags);
    ASSERT_TRUE(daemon.ready()) << daemon.process().output();
    while (HttpClient(daemon.http()).get("/healthcheck").status == 503) {
    }
    int loads = 0;
    int row = 0;
    for (const Change& change : changes()) {
      SCOPED_TRACE(change.name);
      user_ = std::to_string(row++);
      put(file, change.before);
      ASSERT_TRUE(has_reloaded(daemon, std::to_string(++loads))) << daemon.process().output();
      HttpClient client(daemon.http());
      for (int i = 0; i < change.used; ++i) EXPECT_EQ(ask(client), 200) << i;
      put(file, change.after);
      ASSERT_TRUE(has_reloaded(daemon, std::to_string(++loads))) << daemon.process().output();
      for (int i = 0; i < change.then; ++i) EXPECT_EQ(ask(client), 200) << i;
      EXPECT_EQ(ask(client), 429);
    }
    // A debt of a year at the old rate is a matter of a moment at the new one.
    user_ = "slow";
    put(file, "algorithm: token_bucket, period: 20d, requests_per_unit: 1");
    ASSERT_TRUE(has_reloaded(daemon, std::to_string(++loads)));
    HttpClient client(daemon.http());
    EXPECT_EQ(ask(client), 200);
    EXPECT_EQ(ask(client), 429);
    put(file, "algorithm: token_bucket, period: 1s, requests_per_unit: 100000");
    ASSERT_TRUE(has_reloaded(daemon, std::to_string(++loads)));
    // The first that is asked by the new numbers is when their rate begins: 10 µs later there is a token.
    (void)ask(client);
    EXPECT_EQ(ask(client), 200);
    run_reserved(daemon, file, loads);
  }

  // What is given back to a limit that counts anew would be a gift.
  void run_reserved(Daemon& daemon, const std::string& file, int& loads) {
    for (const ReservedChange& change : reserved_changes()) {
      SCOPED_TRACE(change.name);
      const auto ask_for = [&](const std::string& verb, const std::string& more) {
        HttpClient client(daemon.http());
        return sluice::test::ask(client, verb, "user", change.name, more).body;
      };
      put(file, change.before);
      ASSERT_TRUE(has_reloaded(daemon, std::to_string(++loads))) << daemon.process().output();
      const std::string reservation = member(ask_for("reserve", R"(,"cost":9)"), "reservation");
      put(file, change.after);
      ASSERT_TRUE(has_reloaded(daemon, std::to_string(++loads))) << daemon.process().output();
      EXPECT_THAT(ask_for("acquire", R"(,"cost":1)"), HasSubstr(R"("allowed":true)"));
      const std::string before = member(ask_for("peek", R"(,"cost":0)"), "remaining");
      const std::string commit = R"({"reservation":")" + reservation + R"(","actual":0})";
      EXPECT_EQ(member(HttpClient(daemon.http()).post("/v1/commit", commit).body, "result"),
                change.kept ? "done" : "limit_changed");
      const std::string after = member(ask_for("peek", R"(,"cost":0)"), "remaining");
      EXPECT_EQ(std::stoi(after), std::stoi(before) + (change.kept ? 9 : 0));
      EXPECT_EQ(member(HttpClient(daemon.http()).post("/v1/commit", commit).body, "result"), "not_held");
    }
  }

 private:
  // Each text differs from the one before.
  void put(const std::string& file, const std::string& limit) {
    fs::rename(folder_.write("new", policy_of(limit) + "# " + std::to_string(++version_) + "\n"), file);
  }
  [[nodiscard]] int ask(HttpClient& client) const {
    return client.post("/v1/check", R"({"domain":"shop","descriptors":[{"user":")" + user_ + R"("}]})").status;
  }

  TempFolder folder_;
  std::string user_;
  int version_ = 0;
};

TEST_F(Conversion, InMemory) { run({"--http.max_hold", "1ms"}); }

TEST_F(Conversion, InRedis) {
  const RedisServer redis;
  run({"--store.redis.url", redis.url(), "--store.redis.timeout", "10s", "--threads", "1"});
}

}  // namespace
