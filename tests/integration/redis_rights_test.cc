// The least rights that the manual gives to the server's user.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/log.h"
#include "store/redis/redis_store.h"
#include "store/redis/script.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/store_asker.h"

namespace sluice::store::redis {
namespace {

using namespace std::chrono_literals;
using testing::HeldCheck;
using testing::RedisServer;

// The words of the manual's line: ACL SETUSER sluice …
std::vector<std::string> rights() {
  std::ifstream manual(std::string(SLUICE_SOURCE_DIR) + "/docs/redis.md");
  std::string line;
  while (std::getline(manual, line) && !line.starts_with("    ACL SETUSER sluice ")) {
  }
  std::istringstream text(line);
  return {std::istream_iterator<std::string>(text), {}};
}

TEST(RedisRights, NameEveryCommandOfTheScript) {
  const std::vector<std::string> words = rights();
  const std::string text = check_script().text;
  const std::regex command(R"(redis\.p?call\('([A-Z]+)')");
  int commands = 0;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), command); at != std::sregex_iterator(); ++at) {
    std::string right = "+" + at->str(1);
    std::ranges::transform(right, right.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    EXPECT_THAT(words, ::testing::Contains(right));
    ++commands;
  }
  EXPECT_GT(commands, 20);
}

class RedisRightsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { log::configure(log::Level::error, log::Format::text); }
  void SetUp() override {
    ASSERT_EQ(text_of(*server_.command(rights())), "OK");
    auto created = RedisStore::create(
        io_, {.url = "redis://sluice:secret@127.0.0.1:" + std::to_string(server_.port()), .timeout = 5s}, metrics_);
    ASSERT_TRUE(created);
    store_ = *std::move(created);
  }

  // Is it answered? Gives the lease, if one was taken.
  std::uint64_t take(const CountedLimit& limit, std::uint64_t cost, const CountedLimit* beside = nullptr) {
    std::vector<Charge> charges = {{.limit = &limit, .key = "k", .cost = cost}};
    if (beside != nullptr) charges.push_back({.limit = beside, .key = "k", .cost = 0});
    HeldCheck check(charges);
    std::array<std::uint64_t, 2> leases{};
    check.leases = std::span(leases).first(charges.size());
    testing::ask(io_, *store_, check);
    EXPECT_EQ(check.failure, Failure::none) << limit.identity;
    return leases[0];
  }
  void apply(const CountedLimit& limit, const Verb& verb) {
    if (!has_verb(limit.numbers.algorithm, verb.kind)) return;
    HeldCheck check({{.limit = &limit, .key = "k"}});
    check.verb = &verb;
    if (store_->apply(check, testing::real_time()) == Progress::pending) {
      EXPECT_TRUE(testing::run_until(io_, [&] { return check.done; }));
    }
    EXPECT_EQ(check.failure, Failure::none) << limit.identity << ' ' << static_cast<int>(verb.kind);
  }

  RedisServer server_;
  boost::asio::io_context io_;
  metrics::Shard metrics_;
  std::unique_ptr<RedisStore> store_;
};

TEST_F(RedisRightsTest, AreEnoughForAllThatIsDone) {
  const CountedLimit other{.numbers = {.algorithm = Algorithm::token_bucket, .rate = 1, .burst = 5},
                           .identity = "rights/other;tb"};
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::leaky_bucket, Algorithm::fixed_window,
                                    Algorithm::sliding_window, Algorithm::sliding_log, Algorithm::concurrency}) {
    const CountedLimit limit{
        .numbers = {.algorithm = algorithm, .rate = 100, .period = 50ms, .burst = 100, .queue = 99, .ttl = 25ms},
        .identity = "rights/" + std::to_string(static_cast<int>(algorithm))};
    // Again and again, until much of it has left: written anew, changed, trimmed and searched.
    const auto end = std::chrono::steady_clock::now() + 100ms;
    while (std::chrono::steady_clock::now() < end) {
      take(limit, 1);
      const std::uint64_t lease = take(limit, 7, &other);
      apply(limit, Verb::peek());
      apply(limit, Verb::refund(3));
      apply(limit, Verb::settle(1, 2));
      apply(limit, Verb::release(lease, 7));
    }
    apply(limit, Verb::penalize(3));
    apply(limit, Verb::reset());
  }
  EXPECT_EQ(metrics_.value(metrics::Counter::store_failures), 0U);
}

}  // namespace
}  // namespace sluice::store::redis
