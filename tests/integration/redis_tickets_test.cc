// Tickets of queues in a real Redis: many changed at once, with a password, behind Sentinel.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "queue/tickets.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/redis_sets.h"

namespace sluice::queue {
namespace {

using namespace std::chrono_literals;
using Moved = std::pair<bool, std::optional<TicketState>>;

std::string id_of(int number) {
  std::string text = std::to_string(number);
  return std::string(32 - text.size(), '0') + text;
}

std::unique_ptr<Tickets> open(const std::string& url, const std::string& password = {}) {
  RedisTicketsOptions options;
  options.url = url;
  options.access.password = password;
  options.prefix = "t:";
  auto tickets = make_redis_tickets(options);
  EXPECT_TRUE(tickets);
  return tickets ? *std::move(tickets) : nullptr;
}

bool create(Tickets& tickets, const std::string& id) {
  std::promise<bool> answer;
  Ticket ticket;
  ticket.queue = "orders";
  tickets.create(id, ticket, 60s, [&](bool reached) { answer.set_value(reached); });
  return answer.get_future().get();
}

std::optional<Ticket> get(Tickets& tickets, const std::string& id) {
  std::promise<std::optional<Ticket>> answer;
  tickets.get(id, [&](bool /*reached*/, std::optional<Ticket> ticket) { answer.set_value(std::move(ticket)); });
  return answer.get_future().get();
}

/// Claims ids from `first` on, all at once.
std::vector<Moved> claim(Tickets& tickets, int first, int count) {
  std::vector<Moved> answers(static_cast<std::size_t>(count));
  std::atomic<int> left{count};
  for (int i = 0; i < count; ++i) {
    tickets.claim(id_of(first + i), "orders", 60s, [&, i](bool reached, std::optional<TicketState> before) {
      answers[static_cast<std::size_t>(i)] = {reached, before};
      --left;
    });
  }
  while (left > 0) std::this_thread::sleep_for(1ms);
  return answers;
}

TEST(RedisTickets, ManyAtOnceAreEachToldTheirOwnState) {
  testing::RedisServer redis;
  const auto tickets = open(redis.url());
  for (int i = 0; i < 300; i += 3) EXPECT_TRUE(create(*tickets, id_of(i)));
  std::promise<void> cancelled;
  tickets->cancel(id_of(3), "unwanted", 60s, [&](bool, std::optional<TicketState>) { cancelled.set_value(); });
  cancelled.get_future().get();
  const auto answers = claim(*tickets, 0, 300);
  for (int i = 0; i < 300; ++i) {
    const auto& [reached, before] = answers[static_cast<std::size_t>(i)];
    EXPECT_TRUE(reached);
    EXPECT_EQ(before, i == 3       ? std::optional(TicketState::cancelled)
                      : i % 3 == 0 ? std::optional(TicketState::queued)
                                   : std::nullopt)
        << i;
  }
  EXPECT_EQ(claim(*tickets, 1, 1)[0].second, TicketState::running);
  EXPECT_EQ(get(*tickets, id_of(1))->attempts, 2U);
  EXPECT_EQ(get(*tickets, id_of(3))->state, TicketState::cancelled);
  EXPECT_EQ(get(*tickets, id_of(3))->attempts, 0U);
  EXPECT_GT(redis.integer({"PTTL", "t:ticket:" + id_of(299)}), 0) << "no ticket without an end";
}

TEST(RedisTickets, LogInWithThePasswordBesideTheUrl) {
  testing::RedisServer redis({"--requirepass", "secret"}, {},
                             {.over_tls = false, .password = "secret", .clock_ahead = {}});
  EXPECT_TRUE(create(*open(redis.url(), "secret"), id_of(1)));
  EXPECT_FALSE(create(*open(redis.url(), "wrong"), id_of(2)));
}

TEST(RedisTickets, FollowTheMasterThatSentinelsName) {
  testing::SentinelSet set;
  const auto tickets = open(set.url());
  ASSERT_TRUE(create(*tickets, id_of(1)));
  set.fail_over();
  // The old master takes what comes until it is told that it is none, and then ends its connections.
  int last = 1;
  EXPECT_TRUE(testing::wait_for([&] {
    const std::string id = id_of(++last);
    return create(*tickets, id) && set.master().integer({"EXISTS", "t:ticket:" + id}) == 1;
  }));
  EXPECT_EQ(get(*tickets, id_of(last))->state, TicketState::queued);
}

TEST(RedisTickets, WhatCannotKeepThemIsAnErrorAtStart) {
  for (const char* url : {"rediss://127.0.0.1:1", "redis+cluster://127.0.0.1:1"}) {
    const auto tickets = make_redis_tickets({.url = url, .prefix = "t:"});
    ASSERT_FALSE(tickets);
    EXPECT_NE(tickets.error().message.find("without TLS"), std::string::npos) << tickets.error().message;
  }
}

}  // namespace
}  // namespace sluice::queue
