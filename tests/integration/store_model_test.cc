// Every verb of every algorithm on both stores, as the slow model answers it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "store/memory/memory_store.h"
#include "tests/integration/redis_engine.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/store_engine.h"
#include "tests/model/engine.h"
#include "tests/model/random_trace.h"
#include "tests/model/slow_model.h"

namespace sluice::testing {
namespace {

using algorithm::Tick;
using model::Operation;
using model::RandomTrace;

/// Times in ns.
class MemoryEngine final : public StoreEngine {
 public:
  MemoryEngine() : StoreEngine(Tick::nanosecond) {}

 private:
  void ask(store::Check& check, std::int64_t now) override {
    const Time time{.steady = now, .utc = now};
    const store::Progress progress = check.verb != nullptr ? store_.apply(check, time) : store_.check(check, time);
    if (progress != store::Progress::answered) throw std::logic_error("memory answers at once");
    if (check.failure != store::Failure::none) throw std::runtime_error(std::string(to_text(check.failure)));
  }
  store::MemoryStore store_{1'000'000};
};

enum class Kind { memory, redis };
using Case = std::tuple<Kind, std::optional<Algorithm>>;

class StoreModelTest : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<RedisServer>(); }
  static void TearDownTestSuite() { server_.reset(); }
  static inline std::unique_ptr<RedisServer> server_;
};

TEST_P(StoreModelTest, EveryVerbAnswersAsTheModel) {
  const auto [kind, algorithm] = GetParam();
  const bool is_redis = kind == Kind::redis;
  const Tick tick = is_redis ? Tick::microsecond : Tick::nanosecond;
  std::unique_ptr<StoreEngine> engine;
  if (is_redis) {
    engine = std::make_unique<RedisEngine>(*server_);
  } else {
    engine = std::make_unique<MemoryEngine>();
  }
  const char* chosen = std::getenv("SLUICE_SEED");  // NOLINT(concurrency-mt-unsafe)
  const std::uint64_t seed = chosen != nullptr ? std::stoull(chosen) : 1;
  SCOPED_TRACE("SLUICE_SEED=" + std::to_string(seed));
  // What is as fresh is dropped from memory, and with it what an older clock would be told.
  RandomTrace trace(seed, algorithm, tick, !is_redis);
  const int segments = is_redis ? 60 : 400;
  for (int segment = 0; segment < segments; ++segment) {
    model::Engine slow(tick, &model::make_slow_subject);
    std::vector<std::string> lines;
    for (const auto& [id, limit] : trace.start_segment()) {
      slow.define(id, limit);
      lines.push_back(model::limit_line(id, limit, tick));
      (void)engine->apply(model::parse_operation(lines.back()));
    }
    for (int i = 0; i < RandomTrace::kSegment; ++i) {
      const Operation operation = trace.next();
      lines.push_back(model::operation_line(operation));
      const model::Answer want = slow.apply(operation);
      const boost::json::object got = engine->apply(operation);
      if (got != to_json(want)) {
        std::string all;
        for (const std::string& line : lines) all += line + "\n";
        FAIL() << all << "  got   " << boost::json::serialize(got) << "\n  model "
               << boost::json::serialize(to_json(want));
      }
      trace.answered(operation, want);
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  constexpr std::string_view names[] = {"TokenBucket",   "LeakyBucket", "FixedWindow",
                                        "SlidingWindow", "SlidingLog",  "Concurrency"};
  const auto [kind, algorithm] = info.param;
  const std::string store = kind == Kind::redis ? "Redis" : "Memory";
  return store + std::string(algorithm ? names[static_cast<std::size_t>(*algorithm)] : "Several");
}

INSTANTIATE_TEST_SUITE_P(
    Stores, StoreModelTest,
    ::testing::Combine(::testing::Values(Kind::memory, Kind::redis),
                       ::testing::Values(std::optional(Algorithm::token_bucket), std::optional(Algorithm::leaky_bucket),
                                         std::optional(Algorithm::fixed_window),
                                         std::optional(Algorithm::sliding_window),
                                         std::optional(Algorithm::sliding_log), std::optional(Algorithm::concurrency),
                                         std::optional<Algorithm>())),
    name_of);

}  // namespace
}  // namespace sluice::testing
