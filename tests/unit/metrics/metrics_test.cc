#include "metrics/metrics.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "policy/policy.h"
#include "tests/unit/metrics/exposition_lint.h"

namespace sluice::metrics {
namespace {

using testing::Page;
using testing::read_page;

std::shared_ptr<const policy::Policy> policy_of(const std::string& yaml) {
  const policy::SourceText text{"test.yaml", yaml};
  policy::Loaded loaded = policy::load_texts({&text, 1});
  for (const policy::Finding& finding : loaded.findings) {
    if (finding.severity == policy::Finding::Severity::error) ADD_FAILURE() << finding.to_string();
  }
  return loaded.policy;
}

Page page_of(const Registry& registry, const policy::Policy* policy) {
  Page page = read_page(registry.expose(policy));
  for (const std::string& problem : page.problems) ADD_FAILURE() << problem;
  return page;
}

const policy::Rule& rule_named(const policy::Policy& policy, std::string_view label) {
  for (const policy::Rule* rule : policy.rules()) {
    if (rule->label() == label) return *rule;
  }
  throw std::out_of_range("no such rule");
}

// A renamed metric breaks somebody's dashboard: it must be a deliberate change of this file.
TEST(Metrics, NamesAreThoseOfTheGoldenFile) {
  Registry registry;
  std::string names;
  for (const auto& [name, type] : page_of(registry, nullptr).types) names.append(name).append(" ").append(type) += '\n';
  std::ifstream file(SLUICE_SOURCE_DIR "/tests/unit/metrics/metric_names.txt");
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(names, golden.str());
}

TEST(Metrics, SumsTheShards) {
  Registry registry;
  Shard& one = registry.add_shard();
  Shard& two = registry.add_shard();
  one.add(Counter::grpc_requests);
  one.add(Counter::grpc_requests, 4);
  two.add(Counter::grpc_requests, 10);
  two.add(Counter::fallback_deny, 3);
  EXPECT_EQ(one.value(Counter::grpc_requests), 5U);
  EXPECT_EQ(registry.total(Counter::grpc_requests), 15U);
  const Page page = page_of(registry, nullptr);
  EXPECT_EQ(page.values.at("sluice_grpc_requests_total"), "15");
  EXPECT_EQ(page.values.at("sluice_http_requests_total"), "0");
  EXPECT_EQ(page.values.at("sluice_fallback_decisions_total{answer=\"deny\"}"), "3");
  EXPECT_EQ(page.values.at("sluice_fallback_decisions_total{answer=\"local\"}"), "0");
}

TEST(Metrics, EveryCounterHasASeriesOfItsOwn) {
  Registry registry;
  Shard& shard = registry.add_shard();
  for (std::size_t i = 0; i < static_cast<std::size_t>(Counter::count_); ++i) {
    shard.add(static_cast<Counter>(i), 1'000 + i);
  }
  const Page page = page_of(registry, nullptr);
  std::set<std::string> values;
  for (const auto& [series, value] : page.values) {
    if (value != "0") values.insert(value);  // those of histograms
  }
  EXPECT_EQ(values.size(), static_cast<std::size_t>(Counter::count_));
}

TEST(Metrics, HistogramsAddUp) {
  Registry registry;
  Shard& one = registry.add_shard();
  Shard& two = registry.add_shard();
  one.observe(Histogram::decided_by_store, 8'000);
  one.observe(Histogram::decided_by_store, 8'001);
  two.observe(Histogram::decided_by_store, 3'000'000'000);  // beyond the last bound
  two.observe(Histogram::store_batch, 5, 2);
  const Page page = page_of(registry, nullptr);
  const auto bucket = [&](const std::string& le) {
    return page.values.at("sluice_decision_latency_seconds_bucket{decided=\"by_store\",le=\"" + le + "\"}");
  };
  EXPECT_EQ(bucket("8e-06"), "1");
  EXPECT_EQ(bucket("1.6e-05"), "2");
  EXPECT_EQ(bucket("1.048576"), "2");
  EXPECT_EQ(bucket("+Inf"), "3");
  EXPECT_EQ(page.values.at("sluice_decision_latency_seconds_count{decided=\"by_store\"}"), "3");
  EXPECT_EQ(page.values.at("sluice_decision_latency_seconds_sum{decided=\"by_store\"}"), "3.000016001");
  EXPECT_EQ(page.values.at("sluice_store_batch_size_bucket{le=\"4\"}"), "0");
  EXPECT_EQ(page.values.at("sluice_store_batch_size_bucket{le=\"8\"}"), "2");
  EXPECT_EQ(page.values.at("sluice_store_batch_size_sum"), "10");
}

TEST(Metrics, VerdictsCarryTheNamesOfThePolicyInForce) {
  const auto policy = policy_of(R"(
domain: metrics_shop
descriptors:
  - key: user
    rate_limit: { name: ArticleCreate, unit: second, requests_per_unit: 10 }
  - key: path
    value: /a
    rate_limit: { unit: second, requests_per_unit: 10 }
)");
  Registry registry;
  Shard& one = registry.add_shard();
  Shard& two = registry.add_shard();
  const policy::Rule& article = rule_named(*policy, "ArticleCreate");
  one.count(article, Verdict::allowed, 30);
  two.count(article, Verdict::allowed);
  two.count(article, Verdict::denied);
  two.count(*policy->rules()[1], Verdict::shadow_denied, 7);
  const Page page = page_of(registry, policy.get());
  const auto series = [](const std::string& limit, const std::string& verdict) {
    return "sluice_decisions_total{domain=\"metrics_shop\",limit=\"" + limit + "\",verdict=\"" + verdict + "\"}";
  };
  EXPECT_EQ(page.values.at(series("ArticleCreate", "allowed")), "31");
  EXPECT_EQ(page.values.at(series("ArticleCreate", "denied")), "1");
  EXPECT_EQ(page.values.at(series("ArticleCreate", "shadow_denied")), "0");
  EXPECT_EQ(page.values.at(series(policy->rules()[1]->label(), "shadow_denied")), "7");

  // A reload that renames the limit keeps its count; one that removes it drops its series.
  const auto renamed = policy_of(R"(
domain: metrics_shop
descriptors:
  - key: user
    rate_limit: { name: Articles, unit: second, requests_per_unit: 20 }
)");
  const Page after = page_of(registry, renamed.get());
  EXPECT_EQ(after.values.at(series("Articles", "allowed")), "31");
  EXPECT_FALSE(after.values.contains(series("ArticleCreate", "allowed")));
  EXPECT_EQ(page_of(registry, nullptr).values.count(series("Articles", "allowed")), 0U);
}

TEST(Metrics, OddNamesStayOneWellFormedSeriesEach) {
  const auto policy = policy_of(R"(
domain: "metrics_odd \" \\ \n 日本"
descriptors:
  - key: a
    rate_limit: { name: "x\"} 1\nevil_total 2", unit: second, requests_per_unit: 10 }
  - key: b
    rate_limit: { name: same, unit: second, requests_per_unit: 10 }
  - key: c
    rate_limit: { name: same, unit: second, requests_per_unit: 10 }
)");
  ASSERT_NE(policy, nullptr);
  Registry registry;
  Shard& shard = registry.add_shard();
  for (const policy::Rule* rule : policy->rules()) shard.count(*rule, Verdict::denied, 5);
  const Page page = page_of(registry, policy.get());
  EXPECT_FALSE(page.types.contains("evil_total"));
  const std::string domain = R"(sluice_decisions_total{domain="metrics_odd \" \\ \n 日本",)";
  EXPECT_EQ(page.values.at(domain + R"(limit="x\"} 1\nevil_total 2",verdict="denied"})"), "5");
  EXPECT_EQ(page.values.at(domain + R"(limit="same",verdict="denied"})"), "10");
}

TEST(Metrics, GaugesAndCountersOfOthers) {
  Registry registry;
  std::atomic<int> keys{3};
  registry.add_gauge("sluice_memory_store_keys", "Keys in memory.", [&keys] { return keys.load(); });
  registry.add_counter("sluice_memory_store_evicted_total", "Keys dropped for want of room.", [] { return 4e9; });
  Page page = page_of(registry, nullptr);
  EXPECT_EQ(page.values.at("sluice_memory_store_keys"), "3");
  EXPECT_EQ(page.types.at("sluice_memory_store_keys"), "gauge");
  EXPECT_EQ(std::stod(page.values.at("sluice_memory_store_evicted_total")), 4e9);
  keys = 8;
  EXPECT_EQ(page_of(registry, nullptr).values.at("sluice_memory_store_keys"), "8");
}

TEST(Metrics, CanBeReadWhileCounted) {
  const auto policy = policy_of(R"(
domain: metrics_threads
descriptors:
  - key: a
    rate_limit: { unit: second, requests_per_unit: 10 }
  - key: b
    rate_limit: { unit: second, requests_per_unit: 10 }
)");
  Registry registry;
  constexpr int kThreads = 3;
  constexpr int kCounts = 20'000;
  std::atomic<bool> over{false};
  std::jthread reader([&] {
    while (!over) static_cast<void>(registry.expose(policy.get()));
  });
  {
    std::vector<std::jthread> writers;
    writers.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      writers.emplace_back([&] {
        Shard& mine = registry.add_shard();
        for (int n = 0; n < kCounts; ++n) {
          mine.add(Counter::http_requests);
          mine.count(*policy->rules()[static_cast<std::size_t>(n) % 2], Verdict::allowed);
        }
      });
    }
  }
  over = true;
  reader.join();
  EXPECT_EQ(registry.total(Counter::http_requests), std::uint64_t{kThreads} * kCounts);
  const Page page = page_of(registry, policy.get());
  EXPECT_EQ(page.values.at("sluice_decisions_total{domain=\"metrics_threads\",limit=\"a\",verdict=\"allowed\"}"),
            std::to_string(kThreads * kCounts / 2));
}

}  // namespace
}  // namespace sluice::metrics
