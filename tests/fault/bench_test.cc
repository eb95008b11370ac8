// sluice bench against real daemons and a real Redis, and what it shows of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/redis_server.h"
#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"
#include "tests/integration/support/sanitizers.h"

namespace {

using namespace std::chrono_literals;
using sluice::test::Daemon;
using sluice::test::Ended;
using sluice::test::HttpClient;
using sluice::test::kPatience;
using sluice::test::Process;
using sluice::test::run_sluice;
using sluice::test::sluice_binary;
using sluice::test::TempFolder;
using sluice::testing::RedisServer;
using testing::HasSubstr;

constexpr std::string_view kPolicy = R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: second, requests_per_unit: 50, algorithm: token_bucket, burst: 100, on_store_failure: deny }
)";
// What keeps to the policy is over this one, however long it takes.
const std::string kSmaller = "unit: hour, requests_per_unit: 50, algorithm: token_bucket, burst: 1";

// The number behind "name": in one line of JSON.
double figure(const std::string& json, const std::string& name) {
  const std::size_t at = json.find("\"" + name + "\":");
  return at == std::string::npos ? -1 : std::atof(json.c_str() + at + name.size() + 3);
}

std::vector<std::string> bench(std::vector<std::string> more) {
  std::vector<std::string> words{"bench", "--json", "--quiet"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class Bench : public testing::Test {
 protected:
  TempFolder folder_;
  const std::string policy_ = folder_.write("p.yaml", kPolicy);
};

TEST_F(Bench, AsksADaemonByEitherProtocolAndFindsItExact) {
  Daemon daemon(policy_, {"--listen.grpc", "127.0.0.1:0"});
  ASSERT_TRUE(daemon.ready());
  for (const std::string& target : {"grpc://" + daemon.grpc(), "http://" + daemon.http()}) {
    const std::string user = "user=" + target.substr(0, 4) + "{seq:3}";
    const Ended ended = run_sluice(bench(
        {"--target", target, "--policy", policy_, "--descriptor", user, "--rate", "2000", "--duration", "500ms"}));
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_EQ(figure(ended.output, "asked"), 1'000) << ended.output;
    EXPECT_EQ(figure(ended.output, "failed"), 0) << ended.output;
    EXPECT_EQ(figure(ended.output, "keys"), 3) << ended.output;
    EXPECT_GT(figure(ended.output, "used_least"), 0.95) << ended.output;
  }
}

TEST_F(Bench, ExcessIsAnExitCodeOfItsOwn) {
  Daemon daemon(policy_);
  ASSERT_TRUE(daemon.ready());
  const Ended ended =
      run_sluice({"bench", "--target", "http://" + daemon.http(), "--domain", "shop", "--limit", kSmaller,
                  "--descriptor", "user=a", "--rate", "1000", "--duration", "300ms", "--quiet"});
  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("MORE WAS ADMITTED THAN THE LIMITS ALLOW"));
  EXPECT_THAT(ended.output, HasSubstr("1 over their bound"));
}

TEST_F(Bench, InProcessInMemory) {
  const Ended ended = run_sluice(bench(
      {"--target", "memory", "--policy", policy_, "--descriptor", "user={zipf:1.1:1000}", "--duration", "300ms"}));
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_GT(figure(ended.output, "asked"), 1'000);
  EXPECT_GT(figure(ended.output, "denied"), 0);
}

TEST_F(Bench, MistakesAreToldInOneLine) {
  const auto told = [](std::vector<std::string> words) {
    words.insert(words.begin(), "bench");
    const Ended ended = run_sluice(words);
    EXPECT_EQ(ended.exit_code, 1) << ended.output;
    return ended.output;
  };
  const std::string user = "--descriptor";
  EXPECT_THAT(told({"--target", "grpc://127.0.0.1:1", "--domain", "shop", user, "user=1"}),
              HasSubstr("cannot connect to 127.0.0.1:1"));
  EXPECT_THAT(told({"--domain", "shop"}), HasSubstr("no descriptor"));
  EXPECT_THAT(told({user, "user=1"}), HasSubstr("no domain"));
  EXPECT_THAT(told({"--policy", policy_, "--domain", "shp", user, "user=1"}), HasSubstr("did you mean 'shop'?"));
  EXPECT_THAT(told({"--target", "ftp://x", "--domain", "shop", user, "user=1"}), HasSubstr("--target: expected"));
  EXPECT_THAT(told({"--target", "memory", user, "user=1"}), HasSubstr("no policy"));
  EXPECT_THAT(told({"--target", "memory", "--limit", "unit: secnd", user, "user=1"}), HasSubstr("--limit"));
  for (const std::string flag : {"--rate", "--cost", "--duration", "--connections", "--in-flight", "--restarts"}) {
    EXPECT_THAT(told({"--policy", policy_, user, "user=1", flag, "-1"}), HasSubstr(flag)) << flag;
  }
  EXPECT_THAT(told({"--policy", policy_, user, "user={zipf:x:5}"}), HasSubstr("{zipf:EXPONENT:N}"));
}

// What a run prints: on standard output, and on standard error.
struct Printed {
  std::optional<int> exit_code;
  std::string out;
  std::string err;
};
Printed print_of(const TempFolder& folder, const std::vector<std::string>& words) {
  const std::string out = folder.write("out", "");
  std::string command = "exec '" + sluice_binary() + "'";
  for (const std::string& word : words) command += " '" + word + "'";
  Process process({"/bin/sh", "-c", command + " > '" + out + "'"});
  const auto exit_code = process.wait();
  std::ifstream in(out);
  return {exit_code, std::string(std::istreambuf_iterator<char>(in), {}), process.output()};
}

TEST_F(Bench, ADomainThatTheDaemonDoesNotHaveIsToldOf) {
  Daemon daemon(policy_, {"--listen.grpc", "127.0.0.1:0"});
  ASSERT_TRUE(daemon.ready());
  for (const std::string& target : {"grpc://" + daemon.grpc(), "http://" + daemon.http()}) {
    for (const std::vector<std::string>& how : {std::vector<std::string>{"--limit", kSmaller}, {"--no-check"}, {}}) {
      std::vector<std::string> words = bench(
          {"--target", target, "--domain", "other", "--descriptor", "user=1", "--rate", "100", "--duration", "100ms"});
      words.insert(words.end(), how.begin(), how.end());
      const Printed printed = print_of(folder_, words);
      EXPECT_EQ(printed.exit_code, 1) << printed.out;
      EXPECT_THAT(printed.err, HasSubstr("no answer names a limit: is domain 'other'"));
      EXPECT_THAT(printed.out, HasSubstr(R"("check":null)"));
      EXPECT_THAT(printed.out, HasSubstr("no answer names a limit: is domain 'other'"));
    }
  }
}

// A path that is not there, a listener that speaks another protocol, one that never says a word: never "within the
// limits", and the reason is on standard error.
TEST_F(Bench, WithoutAnAnswerItIsAFailureWithAReason) {
  Daemon daemon(policy_, {"--listen.grpc", "127.0.0.1:0", "--listen.admin", "127.0.0.1:0"});
  ASSERT_TRUE(daemon.ready());
  const auto told = [&](const std::string& target, const std::string& reason) {
    for (const bool is_checked : {true, false}) {
      if (!is_checked && reason == "no answer") continue;  // takes its patience
      std::vector<std::string> words{"bench",      "--quiet", "--target", target,  "--descriptor", "user=1",
                                     "--duration", "100ms",   "--policy", policy_, "--rate",       "50"};
      if (!is_checked) words.emplace_back("--no-check");
      const Printed printed = print_of(folder_, words);
      EXPECT_EQ(printed.exit_code, 1) << target << printed.out;
      EXPECT_THAT(printed.err, HasSubstr("sluice bench: no request was answered: " + reason)) << target;
      EXPECT_THAT(printed.out, testing::Not(HasSubstr("within the limits"))) << target;
    }
  };
  told("http://" + daemon.admin(), "HTTP status 404");
  told("grpc://" + daemon.http(), "the daemon");
  daemon.process().pause();
  told("http://" + daemon.http(), "no answer");
  daemon.process().signal(SIGCONT);
}

TEST_F(Bench, ASignalEndsItWithTheReportSoFar) {
  Daemon daemon(policy_);
  ASSERT_TRUE(daemon.ready());
  Process process({sluice_binary(), "bench", "--target", "http://" + daemon.http(), "--policy", policy_, "--descriptor",
                   "user=1", "--rate", "500", "--duration", "60s"});
  ASSERT_TRUE(process.has_printed("1 s: "));
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(), 0);
  EXPECT_THAT(process.output(), HasSubstr("stopped by a signal"));
  EXPECT_THAT(process.output(), HasSubstr("within the limits"));
}

// What would have been asked while the daemon stood still has waited for it: a closed loop would see a few slow
// answers.
TEST_F(Bench, AStallIsSeenByAllThatWasPlannedInIt) {
  Daemon daemon(policy_);
  ASSERT_TRUE(daemon.ready());
  Process process({sluice_binary(), "bench", "--target", "http://" + daemon.http(), "--policy", policy_, "--descriptor",
                   "user=1", "--rate", "500", "--duration", "3s", "--connections", "2", "--json"});
  ASSERT_TRUE(process.has_printed("1 s: "));
  daemon.process().pause();
  std::this_thread::sleep_for(600ms);
  daemon.process().signal(SIGCONT);
  ASSERT_EQ(process.wait(), 0);
  // Of 1500 requests the 300 of the stall waited for up to 600 ms: the slowest tenth for 150 ms and more.
  EXPECT_GT(figure(process.output(), "p90"), 100e6) << process.output();
  EXPECT_GT(figure(process.output(), "max"), 500e6) << process.output();
}

TEST_F(Bench, ALostDaemonIsAskedAgainWhenItIsBack) {
  Daemon daemon(policy_);
  ASSERT_TRUE(daemon.ready());
  const std::string address = daemon.http();
  Process process({sluice_binary(), "bench", "--target", "http://" + address, "--policy", policy_, "--descriptor",
                   "user=1", "--rate", "500", "--duration", "60s", "--restarts", "1", "--connections", "2", "--json"});
  ASSERT_TRUE(process.has_printed("1 s: "));
  daemon.process().signal(SIGKILL);
  (void)daemon.process().wait();
  Daemon again(policy_, {"--listen.http", address});
  ASSERT_TRUE(again.ready());
  // Until its burst has been asked for, too.
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const auto asked = [&] {
    const std::string metrics = HttpClient(again.admin()).get("/metrics").body;
    const std::string name = "\nsluice_http_requests_total ";
    const std::size_t at = metrics.find(name);
    return at == std::string::npos ? -1 : std::atoi(metrics.c_str() + at + name.size());
  };
  while (asked() < 300) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << process.output();
    std::this_thread::sleep_for(10ms);
  }
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(), 0);
  EXPECT_GE(figure(process.output(), "connections_lost"), 2) << process.output();
  EXPECT_GT(figure(process.output(), "admitted"), 200) << process.output();
}

// Processes that meet on keys that nobody has seen: each key is charged as one, and none is ever without expiry.
TEST_F(Bench, public_report_52_sixteen_processes_on_new_keys) {
  RedisServer redis;
  const int keys = std::getenv("SLUICE_FAULT_ROUNDS") != nullptr ? 50'000 : 2'000;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 16; ++i) {
    processes.push_back(std::make_unique<Process>(
        std::vector<std::string>{sluice_binary(), "bench", "--target", redis.url(), "--limit",
                                 "unit: day, requests_per_unit: 1, algorithm: token_bucket, burst: 3", "--descriptor",
                                 "user={seq:" + std::to_string(keys) + "}", "--duration", keys > 2'000 ? "30s" : "2s",
                                 "--timeout", "10s", "--json", "--quiet"}));
  }
  long long looks = 0;
  long long seen = 0;
  const auto look = [&] {
    const auto found = redis.command({"EVAL",
                                      "local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do "
                                      "if redis.call('PTTL', k) == -1 then return -1 end n = n + 1 end return n",
                                      "0"});
    ++looks;
    ASSERT_GE(found->integer, 0) << "a key without expiry";
    seen = std::max(seen, found->integer);
  };
  for (bool running = true; running;) {
    look();
    running = false;
    for (const auto& process : processes) running |= !process->wait(1ms).has_value();
    if (HasFatalFailure()) return;
  }
  look();
  double admitted = 0;
  for (const auto& process : processes) {
    EXPECT_EQ(process->wait(), 0) << process->output();
    EXPECT_EQ(figure(process->output(), "failed"), 0) << process->output();
    admitted += figure(process->output(), "admitted");
  }
  EXPECT_GT(looks, 3);
  ASSERT_GT(seen, 100);
  // Three a key, and what a day gives back in this time: less than one, but for rounding.
  const std::chrono::duration<double> length = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(admitted, static_cast<double>(seen) * (3 + length.count() / 86'400));
  EXPECT_GE(admitted, static_cast<double>(seen) * 2.9);
}

double cpu_seconds(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  unsigned long user = 0;
  unsigned long system = 0;
  if (std::sscanf(text.c_str() + text.rfind(')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                  &system) != 2) {
    return -1;
  }
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

long resident_kb(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  long pages = 0;
  long resident = 0;
  file >> pages >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

// A daemon with nothing to do, with a Redis that is silent, and with none at all: it takes no time. And after any load
// it has as many connections and as much memory as before.
TEST_F(Bench, ADaemonIsNeverBusyForNothingAndNothingPilesUp) {
  RedisServer redis;
  Daemon daemon(policy_, {"--store.redis.url", redis.url(), "--threads", "2"});
  ASSERT_TRUE(daemon.ready());
  const pid_t id = daemon.process().id();
  const auto load = [&](const std::string& duration) {
    const Ended ended =
        run_sluice(bench({"--target", "http://" + daemon.http(), "--policy", policy_, "--descriptor", "user={seq:50}",
                          "--rate", "2000", "--duration", duration, "--connections", "16", "--outage", "10s"}));
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
  };
  load("500ms");
  const long before = resident_kb(id);
  load("1500ms");
  // One a thread, and the test's own; the server may see late that others have ended.
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::atoi(redis.info("clients", "connected_clients").c_str()) > 3) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(5ms);
  }
  if (!sluice::test::kAddressSanitizer) {
    EXPECT_LT(resident_kb(id) - before, 3'000);
  }
  const auto is_idle = [&](std::string_view when) {
    const double begin = cpu_seconds(id);
    std::this_thread::sleep_for(1s);
    EXPECT_LT(cpu_seconds(id) - begin, 0.1) << when;
  };
  is_idle("connected");
  redis.pause();
  is_idle("a silent server");
  redis.kill();
  is_idle("no server");
}

}  // namespace
