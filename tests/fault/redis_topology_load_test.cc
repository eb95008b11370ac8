// 5 000 checks a second through a failover: how long it is felt, by whom, and what is admitted. SLUICE_FAULT_ROUNDS=1
// makes it longer, moves a quarter of the cluster, and holds it to figures that want a machine of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "store/redis/key_slot.h"
#include "tests/fault/redis_topology.h"
#include "tests/integration/support/documented_acl.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Reads now and again how many answers have come from Redis.
class Meter {
 public:
  explicit Meter(const Load& load)
      : load_(load), thread_([this] {
          while (!ended_) {
            samples_.push_back({Clock::now(), load_.sum(&Load::Count::shared) + load_.sum(&Load::Count::denied)});
            std::this_thread::sleep_for(20ms);
          }
        }) {}
  ~Meter() { end(); }
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  void end() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }
  /// Answers a second. Precondition: ended.
  [[nodiscard]] double rate(Clock::time_point from, Clock::time_point until) const {
    const Sample* first = nullptr;
    const Sample* last = nullptr;
    for (const Sample& sample : samples_) {
      if (sample.at < from || sample.at > until) continue;
      if (first == nullptr) first = &sample;
      last = &sample;
    }
    if (first == last) return 0;
    return static_cast<double>(last->answers - first->answers) /
           std::chrono::duration<double>(last->at - first->at).count();
  }
  /// Seconds from `begin` until the rate of half a second is this again; negative: never. Precondition: ended.
  [[nodiscard]] double until_rate_is(double goal, Clock::time_point begin) const {
    for (const Sample& sample : samples_) {
      if (sample.at < begin || samples_.back().at - sample.at < 500ms) continue;
      if (rate(sample.at, sample.at + 500ms) >= goal) {
        return std::chrono::duration<double>(sample.at - begin).count();
      }
    }
    return -1;
  }

 private:
  struct Sample {
    Clock::time_point at;
    std::uint64_t answers;
  };
  const Load& load_;
  std::atomic<bool> ended_{false};
  std::vector<Sample> samples_;
  std::thread thread_;
};

class RedisTopologyLoad : public RedisTopology {
 protected:
  RedisTopologyLoad() { timeout_ = 3s; }  // a busy machine answers within this

  // About 5 000 checks a second, on a machine that has the time.
  void open_many(const std::string& url, std::size_t keys) { open(url, keys, 20, 7ms); }
  static std::chrono::milliseconds calm() { return is_long() ? 4s : 1s; }

  void report(Meter& meter, Clock::time_point begun, Clock::time_point fault, Clock::time_point promoted) {
    std::this_thread::sleep_for(is_long() ? 5s : 2s);
    meter.end();
    const double usual = meter.rate(begun, fault);
    const double back = meter.until_rate_is(0.95 * usual, promoted);
    note("checks a second before", usual);
    note("seconds from the fault to the promotion", std::chrono::duration<double>(promoted - fault).count());
    note("seconds from the promotion until 95 % of that", back);
    note("answered by policy", static_cast<double>(load().sum(&Load::Count::failed)));
    if (is_long()) {
      EXPECT_GE(back, 0);
      EXPECT_LE(back, 2);
    }
    (void)load().stop();  // who was never answered would be told of here
    const auto checked = load().check();
    note("admitted", static_cast<double>(checked.admitted));
    note("bound", static_cast<double>(checked.bound));
    note("seconds that the longest answer took", std::chrono::duration<double>(load().longest_wait()).count());
  }
};

TEST_F(RedisTopologyLoad, SentinelMasterIsKilled) {
  SentinelSet set(servers(kBehindSentinel));
  open_many(set.url(), 20);
  Meter meter(load());
  const auto begun = Clock::now();
  std::this_thread::sleep_for(calm());
  EXPECT_EQ(load().sum(&Load::Count::failed), 0U);
  RedisServer& old_master = set.master();
  const auto killed = Clock::now();
  old_master.kill();
  set.await_switch_from(old_master);
  report(meter, begun, killed, Clock::now());
  expect_untouched_replicas(set);
  expect_bound(1);
}

TEST_F(RedisTopologyLoad, SentinelGracefulFailover) {
  if (!is_long()) GTEST_SKIP() << "RedisSentinel.GracefulFailover is its short form";
  SentinelSet set(servers(kBehindSentinel));
  open_many(set.url(), 20);
  Meter meter(load());
  const auto begun = Clock::now();
  std::this_thread::sleep_for(calm());
  RedisServer& old_master = set.master();
  const auto ordered = Clock::now();
  set.fail_over();
  const auto switched = Clock::now();
  await_replica(old_master);
  report(meter, begun, ordered, switched);
  expect_untouched_replicas(set);
  expect_bound(2);
}

TEST_F(RedisTopologyLoad, ClusterIsReshardedWhileAMasterIsKilled) {
  constexpr std::size_t keys = 60;
  bucket_.rate = 20;  // less than each key is asked for
  const std::uint16_t slots = is_long() ? 4'096 : 300;
  ClusterSet cluster(servers(kClusterNodes));
  open_many(cluster.url(), keys);
  Meter meter(load());
  const auto begun = Clock::now();
  std::this_thread::sleep_for(calm());
  const auto resharding = Clock::now();
  for (std::uint16_t slot = 0; slot < slots / 4; ++slot) cluster.move_slot(slot, 0, 1);
  EXPECT_EQ(load().sum(&Load::Count::failed), 0U);
  const auto killed = Clock::now();
  cluster.server(2).kill();
  auto promoted = killed;
  for (std::uint16_t slot = slots / 4; slot < slots; ++slot) {
    cluster.move_slot(slot, 0, 1);
    if (promoted == killed && cluster.is_master(5)) promoted = Clock::now();
  }
  note("slots moved a second", slots / seconds_since(resharding));
  if (promoted == killed) {
    ASSERT_TRUE(wait_for([&] { return cluster.is_master(5); }));
    promoted = Clock::now();
  }
  report(meter, begun, killed, promoted);
  note("calls sent elsewhere", static_cast<double>(load().metric(metrics::Counter::store_redirects)));
  // Keys of the others went on throughout, moved or not.
  for (std::size_t i = 0; i < keys; ++i) {
    const std::size_t owner = store::redis::key_slot("user-" + std::to_string(i)) * 3 / store::redis::kSlots;
    if (owner == 2) continue;
    EXPECT_EQ(load().counts()[i].failed, 0U) << "user-" << i;
  }
  expect_untouched_replicas(cluster);
  expect_bound(1);
}

}  // namespace
}  // namespace sluice::testing
