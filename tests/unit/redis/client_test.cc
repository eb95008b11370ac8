#include "store/redis/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "store/redis/jitter.h"
#include "tests/unit/redis/redis_test_util.h"

namespace sluice::store::redis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::string_view kNoScript = "-NOSCRIPT x\r\n";

// Time is what a test says it is; the server is what a test feeds.
class ClientTest : public ::testing::Test, protected Client::Owner {
 protected:
  Failure read(Call& call, const redisReply& reply) override {
    return read_check(reply, call.limits, call.is_probe ? probe_ : *call.check);
  }
  void done(Check& check, Failure failure) override {
    outcomes_.push_back(failure);
    check.complete();
    if (on_done_) on_done_();
  }
  void write_probe(Call& call) override {
    call.limits = probe_.limits;
    call.text = {"probe", 1};
    ++probes_;
  }
  void state_changed(bool up, Failure reason, std::string_view detail) override {
    detail_ = detail;
    states_.push_back(up ? "up" : "down: " + std::string(to_text(reason)));
  }

  testing::TestCheck& make_check() {
    checks_.emplace_back(std::vector<Charge>{{.limit = &limit_, .key = "k"}});
    return checks_.back();
  }
  Failure submit(testing::TestCheck& check) {
    Call& call = client_.new_call();
    call.limits = check.limits;
    call.text = {"call", 1};
    call.check = &check;
    return client_.submit(call, now_);
  }
  Failure submit() { return submit(make_check()); }
  void log_in() {
    ASSERT_EQ(client_.wish(), Client::Wish::connect);
    client_.begin_connect(now_);
    client_.connected(now_);
    client_.output().clear();
    client_.received("+OK\r\n", now_);
  }
  void advance(std::int64_t by) {
    now_ += by;
    if (client_.next_wakeup() <= now_) client_.wake(now_);
  }
  void advance_to_wakeup() { advance(client_.next_wakeup() - now_); }
  std::vector<Failure> take_outcomes() { return std::exchange(outcomes_, {}); }
  std::vector<std::string> take_states() { return std::exchange(states_, {}); }
  std::string good() { return testing::answer(testing::kNow, "1", {"-"}); }
  // Five time-outs in a row.
  void open_breaker() {
    for (int i = 0; i < 5; ++i) ASSERT_EQ(submit(), Failure::none);
    advance(20 * kMs);
    ASSERT_EQ(take_outcomes().size(), 5U);
  }

  const Script script_{"return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"};
  const Endpoint endpoint_ = *parse_url("redis://h");
  CountedLimit limit_ = testing::bucket(1, 1);
  testing::TestCheck probe_{{{.limit = &limit_, .key = "p"}}};
  std::deque<testing::TestCheck> checks_;
  std::vector<Failure> outcomes_;
  std::vector<std::string> states_;
  std::string detail_;
  std::function<void()> on_done_;
  int probes_ = 0;
  std::int64_t now_ = 1'000'000'000'000;
  Client client_{endpoint_, script_, {}, *this};
};

TEST_F(ClientTest, Answers) {
  log_in();
  EXPECT_THAT(take_states(), ElementsAre("up"));
  EXPECT_TRUE(client_.is_up());
  EXPECT_EQ(submit(), Failure::none);
  EXPECT_EQ(client_.next_wakeup(), now_ + 20 * kMs);
  client_.received(good(), now_ + 1);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none));
  EXPECT_EQ(client_.next_wakeup(), Client::kNoWakeup);
}

TEST_F(ClientTest, WaitsForTheConnectionUpToTheDeadline) {
  EXPECT_EQ(client_.wish(), Client::Wish::connect);
  client_.begin_connect(now_);
  EXPECT_EQ(submit(), Failure::none);
  advance(19 * kMs);
  EXPECT_EQ(submit(), Failure::none);
  EXPECT_THAT(take_outcomes(), IsEmpty());
  advance(1 * kMs);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::timeout));
  client_.connected(now_);
  client_.output().clear();
  client_.received("+OK\r\n", now_);
  // Only the one that still waits is sent.
  EXPECT_EQ(client_.output(), "*3\r\n$7\r\nEVALSHA\r\n$40\r\n" + script_.sha1 + "\r\ncall");
  client_.received(good(), now_);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none));
}

TEST_F(ClientTest, DeadlinesAreKeptToTheTick) {
  log_in();
  EXPECT_EQ(submit(), Failure::none);
  advance(10 * kMs);
  EXPECT_EQ(submit(), Failure::none);
  advance(10 * kMs - 1);
  EXPECT_THAT(take_outcomes(), IsEmpty());
  advance(1);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::timeout));
  // The late answer is matched to its call and ignored; the next one is for the second.
  client_.received(good() + testing::answer(testing::kNow, "1", {"-"}), now_);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none));
  EXPECT_EQ(checks_[0].completed, 1);
  EXPECT_EQ(checks_[1].completed, 1);
}

TEST_F(ClientTest, TheBreakerOpensAfterFiveAndProbes) {
  log_in();
  take_states();
  open_breaker();
  EXPECT_FALSE(client_.is_up());
  EXPECT_THAT(take_states(), ElementsAre("down: no answer within the time allowed"));
  // In between nothing is sent.
  client_.output().clear();
  EXPECT_EQ(submit(), Failure::circuit_open);
  EXPECT_TRUE(client_.output().empty());
  EXPECT_EQ(probes_, 0);
  const std::int64_t wait = client_.next_wakeup() - now_;
  EXPECT_GE(wait, 400 * kMs);
  EXPECT_LE(wait, 600 * kMs);
  advance_to_wakeup();
  EXPECT_EQ(probes_, 1);
  EXPECT_EQ(client_.output(), "*3\r\n$7\r\nEVALSHA\r\n$40\r\n" + script_.sha1 + "\r\nprobe");
  // Five late answers, then the probe's.
  for (int i = 0; i < 5; ++i) client_.received(good(), now_);
  EXPECT_FALSE(client_.is_up());
  client_.received(good(), now_);
  EXPECT_TRUE(client_.is_up());
  EXPECT_THAT(take_states(), ElementsAre("up"));
  EXPECT_EQ(submit(), Failure::none);
  EXPECT_THAT(take_outcomes(), IsEmpty());
}

TEST_F(ClientTest, AProbeThatFailsIsRepeatedAfterTheInterval) {
  log_in();
  open_breaker();
  for (int i = 0; i < 5; ++i) client_.received(good(), now_);
  take_states();
  for (int i = 1; i <= 20; ++i) {
    advance_to_wakeup();
    ASSERT_EQ(probes_, i);
    client_.received("-OOM x\r\n", now_);
    const std::int64_t wait = client_.next_wakeup() - now_;
    EXPECT_GE(wait, 400 * kMs);
    EXPECT_LE(wait, 600 * kMs);
  }
  EXPECT_THAT(take_states(), IsEmpty());
}

TEST_F(ClientTest, AProbeThatIsTooSlowProvesNothing) {
  log_in();
  open_breaker();
  for (int i = 0; i < 5; ++i) client_.received(good(), now_);
  advance_to_wakeup();
  advance(20 * kMs);
  client_.received(good(), now_);
  EXPECT_FALSE(client_.is_up());
  advance_to_wakeup();
  EXPECT_EQ(probes_, 2);
  client_.received(good(), now_ + 1);
  EXPECT_TRUE(client_.is_up());
}

TEST_F(ClientTest, AProbeWithoutAnswerEndsTheConnection) {
  log_in();
  open_breaker();
  advance_to_wakeup();
  ASSERT_EQ(probes_, 1);
  advance(999 * kMs);
  EXPECT_EQ(client_.wish(), Client::Wish::nothing);
  advance(1 * kMs);
  EXPECT_EQ(client_.wish(), Client::Wish::disconnect);
  client_.finish_disconnect();
  const std::int64_t wait = client_.next_wakeup() - now_;
  EXPECT_GE(wait, 400 * kMs);
  EXPECT_LE(wait, 600 * kMs);
  advance_to_wakeup();
  log_in();
  EXPECT_EQ(probes_, 2);
  client_.received(good(), now_);
  EXPECT_TRUE(client_.is_up());
}

TEST_F(ClientTest, OneSuccessForgetsFailures) {
  log_in();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) ASSERT_EQ(submit(), Failure::none);
    client_.received("-OOM x\r\n-BUSY x\r\n-NOPERM x\r\n-ERR x\r\n", now_);
    EXPECT_THAT(take_outcomes(),
                ElementsAre(Failure::out_of_memory, Failure::busy, Failure::no_permission, Failure::server_error));
    ASSERT_EQ(submit(), Failure::none);
    client_.received(good(), now_);
    take_outcomes();
  }
  EXPECT_TRUE(client_.is_up());
}

TEST_F(ClientTest, TellsTheServersWordsWhereTheKindDoesNotDo) {
  log_in();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(submit(), Failure::none);
    client_.received("-NOPERM this user has no permissions to run 'set'\r\n", now_);
  }
  EXPECT_EQ(detail_, "NOPERM this user has no permissions to run 'set'");
}

TEST_F(ClientTest, TellsWhyALoginWasRefused) {
  client_.begin_connect(now_);
  client_.connected(now_);
  client_.received("-ERR max number of clients reached\r\n", now_);
  EXPECT_THAT(states_, ElementsAre("down: " + std::string(to_text(Failure::server_error))));
  EXPECT_EQ(detail_, "ERR max number of clients reached");
}

TEST_F(ClientTest, ADenialIsASuccess) {
  log_in();
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(submit(), Failure::none);
    client_.received(testing::answer(testing::kNow, "0", {testing::bucket_state(1, 1, 1'000'000, 0, 0, testing::kNow)}),
                     now_);
  }
  EXPECT_THAT(take_outcomes(), ::testing::Each(Failure::none));
  EXPECT_TRUE(client_.is_up());
}

TEST_F(ClientTest, AWrongKeyIsNotTheServersFault) {
  log_in();
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(submit(), Failure::none);
    client_.received(i % 2 == 0 ? "-WRONGTYPE x\r\n" : "-FOREIGN x\r\n", now_);
  }
  EXPECT_TRUE(client_.is_up());
}

TEST_F(ClientTest, ALostConnectionFailsWhatWasSentAndReconnects) {
  log_in();
  take_states();
  ASSERT_EQ(submit(), Failure::none);
  ASSERT_EQ(submit(), Failure::none);
  client_.closed(now_);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::lost, Failure::lost));
  EXPECT_THAT(take_states(), ElementsAre("down: the connection was lost before the answer"));
  // At once, the first time.
  log_in();
  EXPECT_TRUE(client_.is_up());
}

TEST_F(ClientTest, ReconnectsBackOff) {
  client_.begin_connect(now_);
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 12; ++i) {
    client_.closed(now_);
    ASSERT_EQ(client_.wish(), Client::Wish::nothing);
    waits.push_back(client_.next_wakeup() - now_);
    advance_to_wakeup();
    ASSERT_EQ(client_.wish(), Client::Wish::connect);
    client_.begin_connect(now_);
  }
  // 10 ms, doubled, until the breaker's failures in a row are reached: then the probe interval; each ± 20 %.
  const std::vector<std::int64_t> expected = {10, 20, 40, 80, 500, 500, 500, 500, 500, 500, 500, 500};
  for (std::size_t i = 0; i < waits.size(); ++i) {
    EXPECT_GE(waits[i], expected[i] * kMs * 8 / 10) << i;
    EXPECT_LE(waits[i], expected[i] * kMs * 12 / 10) << i;
  }
  EXPECT_THAT(take_states(), ElementsAre("down: no connection to the server"));
}

TEST_F(ClientTest, ConnectingAndGreetingHaveAnEnd) {
  client_.begin_connect(now_);
  advance(1'000 * kMs);
  EXPECT_EQ(client_.wish(), Client::Wish::disconnect);
  client_.finish_disconnect();
  advance_to_wakeup();
  client_.begin_connect(now_);
  client_.connected(now_);
  advance(1'000 * kMs);
  EXPECT_EQ(client_.wish(), Client::Wish::disconnect);
}

TEST_F(ClientTest, WithoutAConnectionChecksFailAtOnce) {
  client_.begin_connect(now_);
  client_.closed(now_);
  EXPECT_EQ(submit(), Failure::unreachable);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(submit(), Failure::unreachable);
  EXPECT_EQ(submit(), Failure::circuit_open);
  EXPECT_THAT(take_outcomes(), IsEmpty());
}

TEST_F(ClientTest, ReadOnlyDropsTheConnection) {
  log_in();
  ASSERT_EQ(submit(), Failure::none);
  ASSERT_EQ(submit(), Failure::none);
  client_.received("-READONLY x\r\n", now_);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::read_only, Failure::read_only));
  EXPECT_EQ(client_.wish(), Client::Wish::disconnect);
}

TEST_F(ClientTest, CancelBeforeAndAfterSending) {
  client_.begin_connect(now_);
  testing::TestCheck& waiting = make_check();
  ASSERT_EQ(submit(waiting), Failure::none);
  client_.cancel(waiting);
  client_.connected(now_);
  client_.output().clear();
  client_.received("+OK\r\n", now_);
  EXPECT_TRUE(client_.output().empty());
  testing::TestCheck& sent = make_check();
  ASSERT_EQ(submit(sent), Failure::none);
  ASSERT_EQ(submit(), Failure::none);
  client_.cancel(sent);
  client_.received(good() + good(), now_);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none));
  EXPECT_EQ(waiting.completed, 0);
  EXPECT_EQ(sent.completed, 0);
}

TEST_F(ClientTest, ACheckMayBeUsedAnewWhenItIsDone) {
  log_in();
  testing::TestCheck& check = make_check();
  int again = 3;
  on_done_ = [&] {
    if (again-- > 0) submit(check);
  };
  submit(check);
  for (int i = 0; i < 4; ++i) client_.received(good(), now_);
  EXPECT_EQ(check.completed, 4);
  EXPECT_EQ(client_.next_wakeup(), Client::kNoWakeup);
}

TEST_F(ClientTest, NoScriptKeepsTheDeadline) {
  log_in();
  ASSERT_EQ(submit(), Failure::none);
  client_.output().clear();
  client_.received(kNoScript, now_);
  EXPECT_EQ(client_.output(), "*3\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\ncall");
  advance(20 * kMs);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::timeout));
  client_.received(good(), now_);
  EXPECT_THAT(take_outcomes(), IsEmpty());
}

TEST_F(ClientTest, NonsenseEndsTheConnection) {
  log_in();
  ASSERT_EQ(submit(), Failure::none);
  client_.received("HTTP/1.1 200 OK\r\n", now_);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::bad_answer));
  EXPECT_EQ(client_.wish(), Client::Wish::disconnect);
}

TEST(Jitter, StaysWithinAFifth) {
  Jitter jitter(1);
  std::int64_t least = 1'000'000;
  std::int64_t most = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t wait = jitter.spread(500'000);
    least = std::min(least, wait);
    most = std::max(most, wait);
  }
  EXPECT_GE(least, 400'000);
  EXPECT_LE(least, 401'000);
  EXPECT_LE(most, 600'000);
  EXPECT_GE(most, 599'000);
}

}  // namespace
}  // namespace sluice::store::redis
