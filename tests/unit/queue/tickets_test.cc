#include "queue/tickets.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>

namespace sluice::queue {
namespace {

using namespace std::chrono_literals;

TEST(Tickets, OfEndedRequestsKeepALifeThatIsLongEnoughAndNotTwiceSo) {
  constexpr std::int64_t now = 1'764'540'000'000'000;
  const auto life = [](std::chrono::microseconds until_expiry) {
    return life_of_ended(now + until_expiry.count(), now);
  };
  EXPECT_EQ(life(10min), std::nullopt);
  EXPECT_EQ(life(0us), std::nullopt);
  EXPECT_EQ(life(1h), std::nullopt);
  EXPECT_EQ(life(1h + 1us), kTicketAfterlife);
  EXPECT_EQ(life(24h), kTicketAfterlife);
  EXPECT_EQ(life(-1us), kTicketAfterlife) << "less than an hour is left of it";
  EXPECT_EQ(life_of_ended(0, now), kTicketAfterlife) << "it may be as old as it likes";
}

}  // namespace
}  // namespace sluice::queue
