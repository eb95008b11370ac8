// Tickets of queues in a real Redis: many changed at once, with a password, behind Sentinel.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "queue/ticket_text.h"
#include "queue/tickets.h"
#include "store/redis/key_slot.h"
#include "tests/integration/redis_secured.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/redis_sets.h"
#include "tests/integration/support/documented_acl.h"

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
  options.timeout = 10s;  // on a busy machine, too
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

TEST(RedisTickets, CountTries) {
  testing::RedisServer redis;
  const auto tickets = open(redis.url());
  EXPECT_TRUE(create(*tickets, id_of(1)));
  tickets->add_attempts(id_of(1), 1);
  EXPECT_EQ(get(*tickets, id_of(1))->attempts, 0U) << "nobody has claimed it";
  claim(*tickets, 1, 2);
  tickets->add_attempts(id_of(1), 1);
  tickets->add_attempts(id_of(1), 1);
  tickets->add_attempts(id_of(2), -1);
  EXPECT_EQ(get(*tickets, id_of(1))->attempts, 3U);
  EXPECT_EQ(get(*tickets, id_of(2))->attempts, 0U);
  EXPECT_EQ(get(*tickets, id_of(2))->state, TicketState::queued) << "nobody has tried it";
  EXPECT_GT(redis.integer({"PTTL", "t:ticket:" + id_of(1)}), 0);
  std::promise<void> ended;
  tickets->finish(id_of(1), TicketState::done, 200, {}, 60s,
                  [&](bool, std::optional<TicketState>) { ended.set_value(); });
  ended.get_future().get();
  tickets->add_attempts(id_of(1), 1);
  tickets->add_attempts(id_of(9), 1);
  EXPECT_EQ(get(*tickets, id_of(1))->attempts, 3U) << "it has ended";
  EXPECT_FALSE(get(*tickets, id_of(9))) << "no ticket by the way";
}

std::string text_at(testing::RedisServer& redis, const std::vector<std::string>& command) {
  const auto reply = redis.command(command);
  return reply->str == nullptr ? "" : std::string(reply->str, reply->len);
}

TEST(RedisTickets, LieAsTextThatCanBeRead) {
  testing::RedisServer redis;
  const auto tickets = open(redis.url());
  EXPECT_TRUE(create(*tickets, id_of(1)));
  claim(*tickets, 1, 1);
  EXPECT_EQ(text_at(redis, {"GET", "t:ticket:" + id_of(1)}), "r 0000000001 000 orders 0 0 0");
  std::promise<void> ended;
  tickets->finish(id_of(1), TicketState::failed, 500, "out of order", 60s,
                  [&](bool, std::optional<TicketState>) { ended.set_value(); });
  ended.get_future().get();
  EXPECT_EQ(text_at(redis, {"GET", "t:ticket:" + id_of(1)}), "f 0000000001 500 orders 0 0 0 out of order");
}

/// What is in the way of some tickets keeps none of the others from being changed by the same call.
TEST(RedisTickets, LeaveAloneWhatIsNone) {
  testing::RedisServer redis;
  const auto tickets = open(redis.url());
  const auto key = [](int number) { return "t:ticket:" + id_of(number); };
  redis.command({"HSET", key(0), "state", "queued"});
  redis.command({"RPUSH", key(2), "q 0000000000 000 orders 0 0 0"});
  const std::vector<std::pair<int, std::string>> foreign{{4, "hello"},
                                                         {6, "q"},
                                                         {8, "r 0000000001 orders"},
                                                         {10, ""},
                                                         {12, "r 00000000x0 000 orders 0 0 0"},
                                                         {14, "q 0000000000 000"},
                                                         {16, "r 9999999999 000"}};
  for (const auto& [number, text] : foreign) redis.command({"SET", key(number), text});
  constexpr int count = 18;
  for (int i = 0; i < count; ++i) EXPECT_TRUE(create(*tickets, id_of(i)));
  for (const auto expected : {TicketState::queued, TicketState::running}) {
    const auto answers = claim(*tickets, 0, count);
    for (int i = 0; i < count; ++i) {
      tickets->add_attempts(id_of(i), 1);
      EXPECT_TRUE(answers[static_cast<std::size_t>(i)].first);
      EXPECT_EQ(answers[static_cast<std::size_t>(i)].second, i % 2 == 0 ? std::nullopt : std::optional(expected)) << i;
    }
  }
  for (const TicketState state : {TicketState::cancelled, TicketState::done}) {
    std::vector<std::promise<Moved>> ended(count);
    for (int i = 0; i < count; ++i) {
      auto& answer = ended[static_cast<std::size_t>(i)];
      tickets->finish(id_of(i), state, 200, {}, 60s,
                      [&](bool reached, std::optional<TicketState> before) { answer.set_value({reached, before}); });
    }
    for (int i = 0; i < count; ++i) {
      const auto [reached, before] = ended[static_cast<std::size_t>(i)].get_future().get();
      EXPECT_TRUE(reached);
      EXPECT_EQ(before, i % 2 == 0 ? std::nullopt : std::optional(TicketState::running)) << i;
    }
  }
  for (int i = 0; i < count; i += 2) {
    std::promise<bool> told;
    tickets->refuse(id_of(i), {}, 60s,
                    [&](bool reached, std::optional<TicketState> /*before*/) { told.set_value(reached); });
    EXPECT_TRUE(told.get_future().get());
  }
  for (int i = 0; i < count; ++i) EXPECT_EQ(get(*tickets, id_of(i)).has_value(), i % 2 == 1) << i;
  EXPECT_EQ(get(*tickets, id_of(1))->state, TicketState::done);
  EXPECT_EQ(get(*tickets, id_of(1))->attempts, 4U);
  EXPECT_EQ(text_at(redis, {"HGET", key(0), "state"}), "queued");
  EXPECT_EQ(redis.integer({"LLEN", key(2)}), 1);
  for (const auto& [number, text] : foreign) EXPECT_EQ(text_at(redis, {"GET", key(number)}), text);
}

TEST(RedisTickets, KeepTheirLifeWhereTheyAreNotGivenAnother) {
  testing::RedisServer redis;
  const auto tickets = open(redis.url());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(create(*tickets, id_of(i)));
  const auto life_left = [&](int number, int status, const std::string& reason,
                             std::optional<std::chrono::hours> life) {
    std::promise<void> ended;
    tickets->finish(id_of(number), TicketState::failed, status, reason, life,
                    [&](bool, std::optional<TicketState>) { ended.set_value(); });
    ended.get_future().get();
    const auto ticket = get(*tickets, id_of(number));
    EXPECT_EQ(ticket->state, TicketState::failed);
    EXPECT_EQ(ticket->status, status);
    EXPECT_EQ(ticket->reason, reason);
    EXPECT_EQ(ticket->queue, "orders");
    return std::chrono::milliseconds(redis.integer({"PTTL", "t:ticket:" + id_of(number)}));
  };
  EXPECT_LE(life_left(0, 200, "", {}), 60s) << "as it was made";
  EXPECT_GT(life_left(1, 200, "", 2h), 1h);
  // What does not fit into its head is stored anew.
  for (const auto& [number, status, reason] : {std::tuple(2, 500, "out of order"), {3, 1000, ""}, {4, -1, "why"}}) {
    const auto left = life_left(number, status, reason, {});
    EXPECT_GT(left, 60s);
    EXPECT_LE(left, kTicketAfterlife);
  }
}

/// Many changes of few tickets, all at once, and what is told of each; then what the tickets have become.
std::vector<std::string> story_of(Tickets& tickets, unsigned seed) {
  constexpr int steps = 5000;
  constexpr int ids = 30;
  std::minstd_rand random(seed);
  std::vector<std::string> told(steps);
  std::atomic<int> left{steps};
  for (int step = 0; step < steps; ++step) {
    const std::string id = id_of(static_cast<int>(random() % ids));
    std::string& answer = told[static_cast<std::size_t>(step)];
    const auto moved = [&answer, &left](bool reached, std::optional<TicketState> before) {
      answer = !reached ? "not reached" : before ? to_text(*before) : "none";
      --left;
    };
    const auto kind = random() % 16;
    if (kind < 6) {
      tickets.claim(id, "mails", 60s, moved);
    } else if (kind < 10) {
      tickets.add_attempts(id, kind < 8 ? 1 : -1);
      --left;
    } else if (kind == 10) {
      tickets.cancel(id, "unwanted", 60s, moved);
    } else if (kind == 11) {
      tickets.finish(id, TicketState::done, step % 1000, {}, {}, moved);
    } else if (kind == 12) {
      tickets.finish(id, TicketState::failed, step, "at step " + std::to_string(step), 60s, moved);
    } else {
      Ticket ticket;
      ticket.queue = "orders";
      ticket.created_us = step;
      ticket.expected_us = step + 1;
      ticket.place = static_cast<std::uint64_t>(step);
      if (kind == 13) {
        ticket.reason = "refused";
        tickets.refuse(id, ticket, 60s, moved);
        continue;
      }
      tickets.create(id, ticket, 60s, [&answer, &left](bool reached) {
        answer = reached ? "made" : "not reached";
        --left;
      });
    }
  }
  while (left > 0) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < ids; ++i) {
    auto ticket = get(tickets, id_of(i));
    if (ticket && ticket->queue == "mails") ticket->created_us = 0;  // by the clock
    told.push_back(ticket ? to_line(*ticket) : "none");
  }
  return told;
}

TEST(RedisTickets, DoAsThoseInMemory) {
  testing::RedisServer redis;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const auto memory = make_memory_tickets(1000);
    const auto in_redis = open(redis.url());
    redis.command({"FLUSHALL"});
    EXPECT_EQ(story_of(*in_redis, seed), story_of(*memory, seed)) << seed;
  }
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
  testing::RedisServer& old_master = set.master();
  testing::RedisServer& new_master = set.replica();
  set.fail_over();
  // The old master takes what comes until it is told that it is none, and then ends its connections. The sentinels do
  // so some seconds later.
  old_master.command({"REPLICAOF", "127.0.0.1", std::to_string(new_master.port())});
  old_master.command({"CLIENT", "KILL", "TYPE", "normal"});
  int last = 1;
  EXPECT_TRUE(testing::wait_for([&] {
    const std::string id = id_of(++last);
    return create(*tickets, id) && set.master().integer({"EXISTS", "t:ticket:" + id}) == 1;
  }));
  EXPECT_EQ(get(*tickets, id_of(last))->state, TicketState::queued);
}

/// By TLS on both sides and with the least rights that the manual tells.
class SecuredTickets {
 public:
  SecuredTickets() {
    // As a server's file may name a user once only.
    const std::string rights = testing::documented_rights(testing::kQueues);
    std::vector<std::string> words{"ACL", "SETUSER", "sluice"};
    std::istringstream text(rights);
    for (std::string word; text >> word;) words.push_back(word);
    (void)redis.command(words);
  }
  [[nodiscard]] std::unique_ptr<Tickets> open(
      const std::string& server_name = testing::Certificates::kServerName) const {
    RedisTicketsOptions options;
    options.url = redis.url();
    options.access = secured.access();
    options.access.tls.server_name = server_name;
    options.prefix = "sluice:";
    options.timeout = 10s;
    auto tickets = make_redis_tickets(options);
    EXPECT_TRUE(tickets);
    return tickets ? *std::move(tickets) : nullptr;
  }

  const testing::SecuredRedis secured{testing::kOneServer};
  testing::RedisServer redis = secured.server();
};

TEST(RedisTickets, OverTlsToTheServerOfTheRightName) {
  const SecuredTickets set;
  const auto tickets = set.open();
  EXPECT_TRUE(create(*tickets, id_of(1)));
  EXPECT_EQ(claim(*tickets, 1, 1)[0].second, TicketState::queued);
  DrainReport report;
  report.delivered = 3;
  tickets->report("orders", "d", report);
  std::promise<DrainReport> told;
  tickets->read_report("orders", [&](bool, const DrainReport& found) { told.set_value(found); });
  EXPECT_EQ(told.get_future().get().delivered, 3U);
  EXPECT_FALSE(create(*set.open("another.test"), id_of(2)));
  const auto unreadable = make_redis_tickets([&] {
    RedisTicketsOptions options;
    options.url = set.redis.url();
    options.access.tls.ca = "/no/such/file";
    return options;
  }());
  ASSERT_FALSE(unreadable);
  EXPECT_NE(unreadable.error().message.find("/no/such/file"), std::string::npos) << unreadable.error().message;
}

TEST(RedisTickets, LieInACluster) {
  testing::ClusterSet set;
  const auto tickets = open(set.url());
  // Their first digits are all sixteen, so their slots are on all masters.
  const auto id = [](int number) {
    std::string text = id_of(number);
    text[0] = "0123456789abcdef"[number % 16];
    return text;
  };
  for (int i = 0; i < 32; ++i) EXPECT_TRUE(create(*tickets, id(i))) << i;
  std::atomic<int> left{64};
  std::atomic<int> queued{0};
  std::atomic<int> unknown{0};
  for (int i = 0; i < 64; ++i) {
    tickets->claim(id(i), "orders", 60s, [&](bool reached, std::optional<TicketState> before) {
      if (reached && before == TicketState::queued) ++queued;
      if (reached && !before) ++unknown;
      --left;
    });
  }
  while (left > 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(queued, 32);
  EXPECT_EQ(unknown, 32);
  // A slot that moves is followed.
  const std::string key = "t:ticket:{3}" + id(3).substr(1);
  const std::size_t from = set.owner_of(key);
  const std::size_t to =
      set.owner_of(key) == set.owner_of("t:ticket:{4}") ? set.owner_of("t:ticket:{5}") : set.owner_of("t:ticket:{4}");
  if (from != to) set.move_slot(store::redis::key_slot(key), from, to);
  EXPECT_EQ(get(*tickets, id(3))->state, TicketState::running);
  EXPECT_TRUE(create(*tickets, id(3 + 64)));
  DrainReport report;
  report.delivered = 7;
  tickets->report("orders", "d", report);
  std::promise<DrainReport> told;
  tickets->read_report("orders", [&](bool, const DrainReport& found) { told.set_value(found); });
  EXPECT_EQ(told.get_future().get().delivered, 7U);
}

}  // namespace
}  // namespace sluice::queue
