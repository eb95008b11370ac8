// How long a failed delivery waits.
#include "queue/retry_pause.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace sluice::queue {
namespace {

using namespace std::chrono_literals;

class RetryPauseTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::optional<std::chrono::nanoseconds> pause(const FailedTry& failed) const {
    return pause_before_retry(options_, failed);
  }
  DrainerOptions options_;
};

TEST_F(RetryPauseTest, DoublesUntilItIsTriedNoMore) {
  options_.attempts = 8;
  EXPECT_EQ(pause({.attempts = 1}), 1s);
  EXPECT_EQ(pause({.attempts = 2}), 2s);
  EXPECT_EQ(pause({.attempts = 5}), 16s);
  EXPECT_EQ(pause({.attempts = 7}), 30s);
  EXPECT_EQ(pause({.attempts = 8}), std::nullopt);
  EXPECT_EQ(pause({.attempts = 8, .asked = 1s}), std::nullopt);
}

TEST_F(RetryPauseTest, IsAsLongAsTheReceiverAsksForAndNeverShorter) {
  EXPECT_EQ(pause({.attempts = 1, .asked = 7s}), 7s);
  EXPECT_EQ(pause({.attempts = 4, .asked = 7s}), 8s);
  EXPECT_EQ(pause({.attempts = 1, .asked = 45s}), 45s) << "longest_pause is the drainer's own";
  EXPECT_EQ(pause({.attempts = 1, .asked = 24h}), 1h);
  EXPECT_EQ(pause({.attempts = 1, .asked = std::chrono::nanoseconds::max()}), 1h);
  EXPECT_EQ(pause({.attempts = 1, .asked = -1s}), 1s);
}

TEST_F(RetryPauseTest, LeavesTimeForALastTryBeforeItExpires) {
  EXPECT_EQ(pause({.attempts = 1, .asked = 10min, .left = 20min}), 10min);
  EXPECT_EQ(pause({.attempts = 1, .asked = 30min, .left = 20min}), 18min);
  EXPECT_EQ(pause({.attempts = 1, .asked = 2h, .left = 24h}), 1h);
  EXPECT_EQ(pause({.attempts = 1, .asked = 2h, .left = std::chrono::microseconds::max()}), 1h);
  EXPECT_EQ(pause({.attempts = 1, .asked = 30min, .left = 0s}), 1s);
}

TEST_F(RetryPauseTest, EndsWithTheBrokersPatience) {
  options_.longest_hold = 60s;
  EXPECT_EQ(pause({.attempts = 1, .asked = 10min, .held = 20s}), 40s);
  EXPECT_EQ(pause({.attempts = 1, .asked = 10min, .held = 59s}), 1s);
  EXPECT_EQ(pause({.attempts = 1, .asked = 10min, .held = 60s}), std::nullopt);
  EXPECT_EQ(pause({.attempts = 4, .held = 53s}), std::nullopt);
}

}  // namespace
}  // namespace sluice::queue
