#include "queue/ticket_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace sluice::queue {
namespace {

Ticket running() {
  return {.queue = "orders",
          .state = TicketState::running,
          .created_us = 1'764'540'000'000'000,
          .expected_us = 1'764'540'000'200'000,
          .place = 17,
          .attempts = 2,
          .status = 0,
          .reason = {}};
}

TEST(TicketText, IsALineThatAPersonCanRead) {
  Ticket ticket = running();
  EXPECT_EQ(to_line(ticket), "r 0000000002 000 orders 1764540000000000 1764540000200000 17");
  ticket.state = TicketState::failed;
  ticket.status = 500;
  ticket.reason = "out of order";
  EXPECT_EQ(to_line(ticket), "f 0000000002 500 orders 1764540000000000 1764540000200000 17 out of order");
}

TEST(TicketText, ComesBackAsItWas) {
  Ticket ticket = running();
  EXPECT_EQ(parse_ticket(to_line(ticket)), ticket);
  EXPECT_EQ(parse_ticket(to_line({})), Ticket());
  for (const TicketState state : {TicketState::queued, TicketState::running, TicketState::done, TicketState::failed,
                                  TicketState::expired, TicketState::cancelled}) {
    ticket.state = state;
    EXPECT_EQ(parse_ticket(to_line(ticket)), ticket);
    EXPECT_EQ(state_of(letter_of(state)), state);
  }
  ticket.created_us = std::numeric_limits<std::int64_t>::min();
  ticket.expected_us = std::numeric_limits<std::int64_t>::max();
  ticket.place = std::numeric_limits<std::uint64_t>::max();
  ticket.attempts = std::numeric_limits<std::uint32_t>::max();
  ticket.status = -1;
  EXPECT_EQ(parse_ticket(to_line(ticket)), ticket);
  ticket.status = 0;
  ticket.reason = " of two\nlines ";
  EXPECT_EQ(parse_ticket(to_line(ticket)), ticket) << "a reason without a status";
}

TEST(TicketText, HasRoomForAnyStatus) {
  EXPECT_EQ(status_text(0), "000");
  EXPECT_EQ(status_text(7), "007");
  EXPECT_EQ(status_text(-1), "-01");
  EXPECT_EQ(status_text(1000), "1000");
  Ticket ticket = running();
  for (const int status :
       {0, 1, 200, 999, 1000, -1, -1000, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
    ticket.status = status;
    EXPECT_EQ(parse_ticket(to_line(ticket)), ticket);
  }
}

TEST(TicketText, OfAnotherFormIsNone) {
  for (const char* line :
       {"", "r", "hello", "r 0000000002", "r 0000000002 000", "r 2 000 orders 1 2 3", "R 0000000002 000 orders 1 2 3",
        "rr 0000000002 000 orders 1 2 3", "x 0000000002 000 orders 1 2 3", "r 000000000x 000 orders 1 2 3",
        "r 9999999999 000 orders 1 2 3", "r 0000000002 00 orders 1 2 3", "r 0000000002 0x0 orders 1 2 3",
        "r 0000000002 000 orders 1 2", "r 0000000002 000 orders 1 2 -3", "r 0000000002 000 orders x 2 3"}) {
    EXPECT_FALSE(parse_ticket(line)) << line;
  }
}

}  // namespace
}  // namespace sluice::queue
