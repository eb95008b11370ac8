#include "tests/fault/redis_topology.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "base/log.h"

namespace sluice::testing {

using namespace std::chrono_literals;

void note(const std::string& what, double value) {
  std::printf("[   NOTE   ] %s: %.3f\n", what.c_str(), value);
  std::fflush(stdout);
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool is_long() { return std::getenv("SLUICE_FAULT_ROUNDS") != nullptr; }

std::size_t times(const std::string& text, const std::string& words) {
  std::size_t found = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
  return found;
}

std::size_t failures_told(const std::string& log) {
  std::istringstream lines(log);
  std::size_t found = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool is_time_out = line.find(to_text(store::Failure::timeout)) != std::string::npos;
    if (line.find("store: failing") != std::string::npos && !is_time_out) ++found;
  }
  return found;
}

void forget_calls(RedisServer& server) { server.command({"CONFIG", "RESETSTAT"}); }

void await_replica(RedisServer& server) {
  ASSERT_TRUE(wait_for([&] { return server.info("replication", "role") == "slave"; }));
  forget_calls(server);
}

namespace {

void expect_untouched(RedisServer& server) {
  if (!server.is_running()) return;
  EXPECT_EQ(server.info("errorstats", "errorstat_CROSSSLOT"), "");
  if (server.info("replication", "role") != "slave") return;
  for (const char* command : {"evalsha", "eval", "get", "zrange", "time"}) {
    EXPECT_EQ(server.calls(command), 0U) << command << " at a replica, port " << server.port();
  }
}

}  // namespace

void expect_untouched_replicas(SentinelSet& set) {
  expect_untouched(set.master());
  expect_untouched(set.replica());
}

void expect_untouched_replicas(ClusterSet& cluster) {
  for (std::size_t i = 0; i < cluster.size(); ++i) expect_untouched(cluster.server(i));
}

void RedisTopology::SetUpTestSuite() { log::configure(log::Level::error, log::Format::text); }

// Of a test that has failed on its way.
void RedisTopology::TearDown() {
  if (keeps_log_) std::printf("%s", take_log().c_str());
}

void RedisTopology::keep_log() {
  keeps_log_ = true;
  log::configure(log::Level::info, log::Format::text);
  ::testing::internal::CaptureStderr();
}

std::string RedisTopology::take_log() {
  keeps_log_ = false;
  log::configure(log::Level::error, log::Format::text);
  return ::testing::internal::GetCapturedStderr();
}

SetOptions RedisTopology::servers(std::string_view title) {
  if (!is_secure_ && std::getenv("SLUICE_REDIS_TLS") == nullptr) return {};
  secured_ = std::make_unique<SecuredRedis>(title);
  return secured_->servers();
}

store::redis::RedisOptions RedisTopology::at(const std::string& url) const {
  store::redis::RedisOptions options{.url = url, .timeout = timeout_, .failures = 3, .probe_interval = 200ms};
  if (secured_ != nullptr) options.access = secured_->access();
  return options;
}

void RedisTopology::open(const std::string& url, std::size_t keys, std::size_t callers,
                         std::chrono::microseconds pause) {
  load_ = std::make_unique<Load>(
      Load::Options{.redis = at(url), .numbers = bucket_, .callers = callers, .keys = keys, .pause = pause});
  load_->start();
  ASSERT_TRUE(load_->hear(500));
}

void RedisTopology::expect_bound(std::uint64_t switches) {
  (void)load_->stop();
  note("tokens admitted beyond what would be without replication's loss", static_cast<double>(load_->check().excess));
  const auto report = load_->check({.restarts = switches});
  EXPECT_EQ(report.keys_over, 0U) << report.worst.name << ": " << report.worst.admitted << " admitted, bound "
                                  << report.worst.bound;
  if (is_long()) {
    EXPECT_LT(load_->longest_wait(), 20 * timeout_);
  }
}

}  // namespace sluice::testing
