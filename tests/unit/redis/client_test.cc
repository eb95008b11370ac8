#include "store/redis/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "store/redis/advice.h"
#include "store/redis/detour.h"
#include "store/redis/jitter.h"
#include "tests/unit/redis/redis_test_util.h"

namespace sluice::store::redis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using namespace std::chrono_literals;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::string_view kNoScript = "-NOSCRIPT x\r\n";

// Time is what a test says it is; the server is what a test feeds.
class ClientTest : public ::testing::Test, protected Client::Owner {
 protected:
  void done(Check& check, Failure failure, std::int64_t /*at*/) override {
    outcomes_.push_back(failure);
    check.complete();
    if (on_done_) on_done_();
  }
  void bad_key(Failure /*failure*/, std::string_view words) override { bad_keys_.emplace_back(words); }
  void call_sent(std::size_t /*requests*/) override { ++calls_; }
  void redirected(Client& client, Call& call, const Redirect* redirect) override {
    if (!is_cluster_) {
      Client::Owner::redirected(client, call, redirect);
      return;
    }
    // As a store does with a call to be tried again at the same node.
    if (redirect != nullptr) call.refusal = refusal_of(*redirect);
    client.adopt(call, false, redirect != nullptr ? now_ + kMs : 0, now_);
  }

  testing::TestCheck& make_check() {
    checks_.emplace_back(std::vector<Charge>{{.limit = &limit_, .key = "k"}});
    return checks_.back();
  }
  Failure submit(testing::TestCheck& check) { return client_.submit(check, check.limits, Time{}, now_); }
  Failure submit() { return submit(make_check()); }
  // What a transport does that is free to write. What has left, as the number of calls.
  int flush() {
    const int before = calls_;
    client_.flush(now_);
    return calls_ - before;
  }
  std::string take_output() { return std::exchange(client_.output(), {}); }
  int probes() {
    const std::string output = take_output();
    int found = 0;
    for (std::size_t at = output.find("{}probe"); at != std::string::npos; at = output.find("{}probe", at + 1)) ++found;
    return found;
  }
  void receive(std::string_view bytes) {
    client_.received(bytes, now_);
    client_.flush(now_);
  }
  void log_in() {
    ASSERT_EQ(client_.wish(), Client::Wish::connect);
    client_.begin_connect(now_);
    client_.connected(now_);
    client_.output().clear();
    receive("+OK\r\n");
  }
  void advance(std::int64_t by) {
    now_ += by;
    if (client_.next_wakeup() <= now_) client_.wake(now_);
  }
  void advance_to_wakeup() { advance(client_.next_wakeup() - now_); }
  std::vector<Failure> take_outcomes() { return std::exchange(outcomes_, {}); }
  std::vector<std::string> take_states() { return std::exchange(states_, {}); }
  static std::string good() { return testing::answer(testing::kNow, "1", {"-"}); }
  static std::string good(int times) {
    std::string bytes;
    for (int i = 0; i < times; ++i) bytes += good();
    return bytes;
  }
  // Calls that fail one after the other: those that have left together count as one.
  void open_breaker() {
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(submit(), Failure::none);
      client_.flush(now_);
      advance(20 * kMs);
    }
    ASSERT_EQ(take_outcomes().size(), 5U);
    ASSERT_TRUE(node_.is_open());
  }

  const Script script_{"return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"};
  const Hello hello_;
  CountedLimit limit_ = testing::bucket(1, 1);
  std::deque<testing::TestCheck> checks_;
  std::vector<Failure> outcomes_;
  std::vector<std::string> states_;
  std::vector<std::string> bad_keys_;
  std::string detail_;
  std::function<void()> on_done_;
  bool is_cluster_ = false;
  int calls_ = 0;
  std::int64_t now_ = 1'000'000'000'000;
  Node node_{{}, [this](bool up, Failure reason, std::string_view detail) {
               detail_ = detail;
               states_.push_back(up ? "up" : "down: " + std::string(to_text(reason)));
             }};
  Client client_{hello_, script_, {}, node_, *this};
};

TEST_F(ClientTest, Answers) {
  log_in();
  EXPECT_THAT(take_states(), ElementsAre("up"));
  EXPECT_TRUE(client_.is_up());
  EXPECT_EQ(submit(), Failure::none);
  EXPECT_EQ(client_.next_wakeup(), now_ + 20 * kMs);
  EXPECT_EQ(flush(), 1);
  client_.received(good(), now_ + 1);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none));
  EXPECT_EQ(client_.next_wakeup(), Client::kNoWakeup);
}

TEST_F(ClientTest, WhatComesBeforeTheTransportIsFreeLeavesTogether) {
  log_in();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(submit(), Failure::none);
  EXPECT_EQ(flush(), 1);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(submit(), Failure::none);
  EXPECT_EQ(flush(), 1);
  // Two are on their way: what comes now waits for one of their answers.
  for (int i = 0; i < 5; ++i) ASSERT_EQ(submit(), Failure::none);
  EXPECT_EQ(flush(), 0);
  const auto denied = [](int n) {
    return testing::answer(testing::kNow, "1" + std::string(static_cast<std::size_t>(n - 1), '0'), {"-"});
  };
  receive(denied(3));
  EXPECT_EQ(calls_, 3);
  receive(denied(4) + denied(5));
  EXPECT_THAT(take_outcomes(), ::testing::SizeIs(12));
  // One key a call, however many asked for it; the first of each was admitted.
  EXPECT_TRUE(checks_[0].admitted);
  EXPECT_FALSE(checks_[1].admitted);
  EXPECT_TRUE(checks_[3].admitted);
  EXPECT_TRUE(checks_[7].admitted);
  EXPECT_FALSE(checks_[11].admitted);
}

TEST_F(ClientTest, FullBatchesArePipelinedFurther) {
  log_in();
  std::deque<std::string> keys;
  std::deque<testing::TestCheck> checks;
  for (std::size_t i = 0; i < 6 * Batch::kMostKeys; ++i) {
    keys.push_back(std::to_string(i));
    checks.emplace_back(std::vector<Charge>{{.limit = &limit_, .key = keys.back()}});
    ASSERT_EQ(submit(checks.back()), Failure::none);
  }
  EXPECT_EQ(flush(), static_cast<int>(Client::kMostCalls));
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
  receive("+OK\r\n");
  // Only the one that still waits is sent.
  EXPECT_THAT(client_.output(), ::testing::HasSubstr("$22\r\n\x08\x01\x01t"));
  receive(good());
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none));
}

TEST_F(ClientTest, DeadlinesAreKeptToTheTick) {
  log_in();
  EXPECT_EQ(submit(), Failure::none);
  EXPECT_EQ(flush(), 1);
  advance(10 * kMs);
  EXPECT_EQ(submit(), Failure::none);
  EXPECT_EQ(flush(), 1);
  advance(10 * kMs - 1);
  EXPECT_THAT(take_outcomes(), IsEmpty());
  advance(1);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::timeout));
  // The late answer is matched to its call and ignored; the next one is for the second.
  receive(good(2));
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none));
  EXPECT_EQ(checks_[0].completed, 1);
  EXPECT_EQ(checks_[1].completed, 1);
}

TEST_F(ClientTest, DeadlinesOfOneBatchAreEachTheirOwn) {
  log_in();
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(submit(), Failure::none);
    EXPECT_EQ(flush(), 1);
  }
  ASSERT_EQ(submit(), Failure::none);
  advance(5 * kMs);
  ASSERT_EQ(submit(), Failure::none);
  advance(15 * kMs);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::timeout, Failure::timeout, Failure::timeout));
  EXPECT_EQ(client_.next_wakeup(), now_ + 5 * kMs);
  receive(good(2));
  // The third was not sent yet, and is withdrawn: only the fourth leaves.
  EXPECT_EQ(calls_, 3);
  receive(good());
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none));
}

TEST_F(ClientTest, TheBreakerOpensAfterFiveAndProbes) {
  log_in();
  take_states();
  open_breaker();
  EXPECT_FALSE(client_.is_up());
  EXPECT_THAT(take_states(), ElementsAre("down: no answer within the time allowed"));
  // In between nothing is sent.
  take_output();
  EXPECT_EQ(submit(), Failure::circuit_open);
  EXPECT_EQ(flush(), 0);
  EXPECT_TRUE(client_.output().empty());
  const std::int64_t wait = client_.next_wakeup() - now_;
  EXPECT_GE(wait, 400 * kMs);
  EXPECT_LE(wait, 600 * kMs);
  advance_to_wakeup();
  EXPECT_EQ(probes(), 1);
  // Late answers, then the probe's.
  receive(good(2));
  EXPECT_FALSE(client_.is_up());
  receive(good());
  EXPECT_TRUE(client_.is_up());
  EXPECT_THAT(take_states(), ElementsAre("up"));
  EXPECT_EQ(submit(), Failure::none);
  EXPECT_THAT(take_outcomes(), IsEmpty());
}

TEST_F(ClientTest, WhatTimesOutTogetherIsOneFailure) {
  log_in();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(submit(), Failure::none);
  EXPECT_EQ(flush(), 1);
  advance(20 * kMs);
  EXPECT_THAT(take_outcomes(), ::testing::SizeIs(100));
  EXPECT_FALSE(node_.is_open());
}

TEST_F(ClientTest, AnOpenBreakerFailsWhatIsNotSentYet) {
  log_in();
  ASSERT_EQ(submit(), Failure::none);
  EXPECT_EQ(flush(), 1);
  ASSERT_EQ(submit(), Failure::none);
  for (int i = 0; i < 5; ++i) node_.failed(Failure::timeout, {}, now_);
  client_.node_changed(now_);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::circuit_open));
  EXPECT_EQ(flush(), 0);
  // What had left is still answered, and proves that the server serves.
  receive(good());
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none));
  EXPECT_FALSE(node_.is_open());
}

TEST_F(ClientTest, AProbeThatFailsIsRepeatedAfterTheInterval) {
  log_in();
  open_breaker();
  receive(good(2));
  take_states();
  take_output();
  for (int i = 1; i <= 20; ++i) {
    advance_to_wakeup();
    ASSERT_EQ(probes(), 1);
    receive("-OOM x\r\n");
    const std::int64_t wait = client_.next_wakeup() - now_;
    EXPECT_GE(wait, 400 * kMs);
    EXPECT_LE(wait, 600 * kMs);
  }
  EXPECT_THAT(take_states(), IsEmpty());
}

// The probe's slot has moved to another node of a cluster: this one is alive all the same.
TEST_F(ClientTest, AProbeThatIsSentElsewhereWasAnswered) {
  log_in();
  open_breaker();
  receive(good(2));
  take_states();
  take_output();
  advance_to_wakeup();
  ASSERT_EQ(probes(), 1);
  receive("-CLUSTERDOWN Hash slot not served\r\n");
  EXPECT_FALSE(client_.is_up());
  advance_to_wakeup();
  ASSERT_EQ(probes(), 1);
  receive("-MOVED 7 127.0.0.1:7001\r\n");
  EXPECT_TRUE(client_.is_up());
  EXPECT_THAT(take_states(), ElementsAre("up"));
  EXPECT_EQ(submit(), Failure::none);
}

// Refused again and again is another thing than no answer: nothing was charged, and the log says what is wrong.
TEST_F(ClientTest, WhatANodeRefusesUntilTheDeadlineIsNoTimeOut) {
  is_cluster_ = true;
  log_in();
  take_states();
  const std::vector<std::pair<std::string, Failure>> cases = {
      {"-CLUSTERDOWN The cluster is down\r\n", Failure::cluster_down},
      {"-TRYAGAIN Multiple keys request during rehashing of slot\r\n", Failure::slot_moving}};
  for (const auto& [words, failure] : cases) {
    ASSERT_EQ(submit(), Failure::none);
    flush();
    for (int i = 0; i < 20; ++i) {
      receive(words);
      advance(kMs);
      flush();
    }
    EXPECT_THAT(take_outcomes(), ElementsAre(failure));
  }
  // One that was on its way when time was up may have been carried out.
  ASSERT_EQ(submit(), Failure::none);
  flush();
  receive(cases[0].first);
  advance(kMs);
  EXPECT_EQ(flush(), 1);
  advance(20 * kMs);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::timeout));
  receive(good());  // nobody waits for it any more
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(submit(), Failure::none);
    flush();
    receive(cases[0].first);
    advance(20 * kMs);
  }
  EXPECT_THAT(take_states(), ElementsAre("down: " + std::string(to_text(Failure::cluster_down))));
}

TEST_F(ClientTest, AProbeThatIsTooSlowProvesNothing) {
  log_in();
  open_breaker();
  receive(good(2));
  take_output();
  advance_to_wakeup();
  EXPECT_EQ(probes(), 1);
  advance(20 * kMs);
  receive(good());
  EXPECT_FALSE(client_.is_up());
  advance_to_wakeup();
  EXPECT_EQ(probes(), 1);
  receive(good());
  EXPECT_TRUE(client_.is_up());
}

TEST_F(ClientTest, ASilentConnectionIsMadeAnew) {
  log_in();
  ASSERT_EQ(submit(), Failure::none);
  EXPECT_EQ(flush(), 1);
  advance(20 * kMs);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::timeout));
  advance(980 * kMs - 1);
  EXPECT_EQ(client_.wish(), Client::Wish::nothing);
  advance(1);
  EXPECT_EQ(client_.wish(), Client::Wish::disconnect);
  client_.finish_disconnect();
  advance_to_wakeup();
  log_in();
  EXPECT_TRUE(client_.is_up());
}

TEST_F(ClientTest, AnswersKeepAConnectionThatIsSlow) {
  log_in();
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(submit(), Failure::none);
    EXPECT_EQ(flush(), 1);
  }
  advance(900 * kMs);
  receive(good());
  advance(900 * kMs);
  EXPECT_EQ(client_.wish(), Client::Wish::nothing);
  receive(good());
  EXPECT_TRUE(client_.is_up());
}

TEST_F(ClientTest, OneSuccessForgetsFailures) {
  log_in();
  for (int round = 0; round < 3; ++round) {
    for (const char* bytes : {"-OOM x\r\n", "-BUSY x\r\n", "-NOPERM x\r\n", "-ERR x\r\n"}) {
      ASSERT_EQ(submit(), Failure::none);
      EXPECT_EQ(flush(), 1);
      receive(bytes);
    }
    EXPECT_THAT(take_outcomes(),
                ElementsAre(Failure::out_of_memory, Failure::busy, Failure::no_permission, Failure::server_error));
    ASSERT_EQ(submit(), Failure::none);
    EXPECT_EQ(flush(), 1);
    receive(good());
    take_outcomes();
  }
  EXPECT_TRUE(client_.is_up());
}

TEST_F(ClientTest, TellsTheServersWordsWhereTheKindDoesNotDo) {
  log_in();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(submit(), Failure::none);
    EXPECT_EQ(flush(), 1);
    receive("-NOPERM this user has no permissions to run 'set'\r\n");
  }
  EXPECT_EQ(detail_, "NOPERM this user has no permissions to run 'set': " + std::string(kRights));
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
    EXPECT_EQ(flush(), 1);
    receive(testing::answer(testing::kNow, "0", {testing::bucket_state(1, 1, 1'000'000, 0, 0, testing::kNow)}));
  }
  EXPECT_THAT(take_outcomes(), ::testing::Each(Failure::none));
  EXPECT_TRUE(client_.is_up());
}

TEST_F(ClientTest, AWrongKeyIsNotTheServersFault) {
  log_in();
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(submit(), Failure::none);
    EXPECT_EQ(flush(), 1);
    receive("*3\r\n:" + std::to_string(testing::kNow) + "\r\n" + testing::bulk("x") +
            (i % 2 == 0 ? "-WRONGTYPE x\r\n" : "-FOREIGN x\r\n"));
  }
  EXPECT_TRUE(client_.is_up());
  EXPECT_EQ(bad_keys_.size(), 20U);
  EXPECT_THAT(take_outcomes(), ::testing::Contains(Failure::wrong_type).Times(10));
}

// The others of the batch are judged all the same.
TEST_F(ClientTest, AWrongKeyFailsOnlyThoseThatAskForIt) {
  log_in();
  testing::TestCheck other({{.limit = &limit_, .key = "other"}});
  testing::TestCheck both({{.limit = &limit_, .key = "k"}, {.limit = &limit_, .key = "other"}});
  ASSERT_EQ(submit(), Failure::none);
  ASSERT_EQ(submit(both), Failure::none);
  ASSERT_EQ(submit(other), Failure::none);
  EXPECT_EQ(flush(), 1);
  receive("*4\r\n:" + std::to_string(testing::kNow) + "\r\n" + testing::bulk("xx1") + "-WRONGTYPE x\r\n$-1\r\n");
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::wrong_type, Failure::wrong_type, Failure::none));
  EXPECT_TRUE(other.admitted);
  EXPECT_EQ(other.decisions[0].remaining, 0U);
}

TEST_F(ClientTest, AForbiddenKeyIsTheServersFault) {
  log_in();
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(submit(), Failure::none);
    EXPECT_EQ(flush(), 1);
    receive("*3\r\n:" + std::to_string(testing::kNow) + "\r\n" + testing::bulk("x") + "-NOPERM x\r\n");
  }
  EXPECT_THAT(take_outcomes(), ::testing::Each(Failure::no_permission));
  EXPECT_TRUE(node_.is_open());
}

TEST_F(ClientTest, ALostConnectionFailsWhatWasSentAndReconnects) {
  log_in();
  take_states();
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(submit(), Failure::none);
    EXPECT_EQ(flush(), 1);
  }
  ASSERT_EQ(submit(), Failure::none);
  client_.closed(now_);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::lost, Failure::lost));
  EXPECT_THAT(take_states(), ElementsAre("down: the connection was lost before the answer"));
  // At once, the first time; what had not been sent, and what comes now, goes over the new connection.
  ASSERT_EQ(submit(), Failure::none);
  log_in();
  EXPECT_TRUE(client_.is_up());
  receive(testing::answer(testing::kNow, "10", {"-"}));
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none, Failure::none));
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
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(submit(), Failure::none);
    EXPECT_EQ(flush(), 1);
  }
  receive("-READONLY x\r\n");
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
  receive("+OK\r\n");
  EXPECT_TRUE(client_.output().empty());
  testing::TestCheck& sent = make_check();
  testing::TestCheck& withdrawn = make_check();
  ASSERT_EQ(submit(sent), Failure::none);
  EXPECT_EQ(flush(), 1);
  ASSERT_EQ(submit(withdrawn), Failure::none);
  ASSERT_EQ(submit(), Failure::none);
  client_.cancel(withdrawn);
  client_.cancel(sent);
  EXPECT_EQ(flush(), 1);
  receive(good(2));
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none));
  EXPECT_EQ(waiting.completed, 0);
  EXPECT_EQ(withdrawn.completed, 0);
  EXPECT_EQ(sent.completed, 0);
}

// A withdrawn one that was sent has taken its tokens, so those behind it in the batch are judged after it.
TEST_F(ClientTest, AWithdrawnCheckStillCountsForThoseBehindIt) {
  log_in();
  testing::TestCheck& gone = make_check();
  ASSERT_EQ(submit(gone), Failure::none);
  ASSERT_EQ(submit(), Failure::none);
  EXPECT_EQ(flush(), 1);
  client_.cancel(gone);
  receive(testing::answer(testing::kNow, "10", {"-"}));
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none));
  EXPECT_FALSE(checks_[1].admitted);
}

TEST_F(ClientTest, ACheckMayBeUsedAnewWhenItIsDone) {
  log_in();
  testing::TestCheck& check = make_check();
  int again = 3;
  on_done_ = [&] {
    if (again-- > 0) {
      EXPECT_EQ(submit(check), Failure::none);
    }
  };
  EXPECT_EQ(submit(check), Failure::none);
  EXPECT_EQ(flush(), 1);
  for (int i = 0; i < 4; ++i) receive(good());
  EXPECT_EQ(check.completed, 4);
  EXPECT_EQ(client_.next_wakeup(), Client::kNoWakeup);
}

TEST_F(ClientTest, OneThatIsDoneMayCancelOthersOfItsBatch) {
  log_in();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(submit(), Failure::none);
  EXPECT_EQ(flush(), 1);
  on_done_ = [&] { client_.cancel(checks_[1]); };
  receive(testing::answer(testing::kNow, "100", {"-"}));
  EXPECT_EQ(checks_[0].completed, 1);
  EXPECT_EQ(checks_[1].completed, 0);
  EXPECT_EQ(checks_[2].completed, 1);
}

TEST_F(ClientTest, NoScriptKeepsTheDeadline) {
  log_in();
  ASSERT_EQ(submit(), Failure::none);
  EXPECT_EQ(flush(), 1);
  client_.output().clear();
  receive(kNoScript);
  EXPECT_THAT(client_.output(), ::testing::StartsWith("*5\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n"));
  advance(20 * kMs);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::timeout));
  receive(good());
  EXPECT_THAT(take_outcomes(), IsEmpty());
}

TEST_F(ClientTest, NonsenseEndsTheConnection) {
  log_in();
  ASSERT_EQ(submit(), Failure::none);
  EXPECT_EQ(flush(), 1);
  client_.received("HTTP/1.1 200 OK\r\n", now_);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::bad_answer));
  EXPECT_EQ(client_.wish(), Client::Wish::disconnect);
}

TEST_F(ClientTest, ASilentConnectionIsKeptForAsLongAsAChecksTimeout) {
  Client client(hello_, script_, {.timeout = 3s}, node_, *this);
  client.begin_connect(now_);
  client.connected(now_);
  client.output().clear();
  client.received("+OK\r\n", now_);
  const auto ask = [&] {
    testing::TestCheck& check = make_check();
    EXPECT_EQ(client.submit(check, check.limits, Time{}, now_), Failure::none);
    client.flush(now_);
  };
  ask();
  now_ += 2'500 * kMs;
  EXPECT_GT(client.next_wakeup(), now_);
  client.wake(now_);
  client.received(good(), now_);
  client.flush(now_);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none));
  ask();
  now_ += 3'000 * kMs - 1;
  client.wake(now_);
  EXPECT_EQ(client.wish(), Client::Wish::nothing);
  now_ += 1;
  client.wake(now_);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::timeout));
  EXPECT_EQ(client.wish(), Client::Wish::disconnect);
}

TEST_F(ClientTest, AnOldConnectionIsReplacedWithoutAFailure) {
  Client client(hello_, script_, {.max_age = 1s}, node_, *this);
  const auto greet = [&] {
    ASSERT_EQ(client.wish(), Client::Wish::connect);
    client.begin_connect(now_);
    client.connected(now_);
    client.output().clear();
    client.received("+OK\r\n", now_);
    client.flush(now_);
  };
  greet();
  take_states();
  EXPECT_GE(client.next_wakeup() - now_, 800 * kMs);
  EXPECT_LE(client.next_wakeup() - now_, 1'200 * kMs);
  testing::TestCheck& sent = make_check();
  ASSERT_EQ(client.submit(sent, sent.limits, Time{}, now_ + 1'200 * kMs - 1), Failure::none);
  client.flush(now_);
  now_ += 1'200 * kMs;
  testing::TestCheck& waiting = make_check();
  ASSERT_EQ(client.submit(waiting, waiting.limits, Time{}, now_), Failure::none);
  client.flush(now_);
  EXPECT_EQ(client.wish(), Client::Wish::nothing);  // not before the answer
  client.received(good(), now_);
  client.flush(now_);
  EXPECT_EQ(sent.completed, 1);
  greet();
  client.received(good(), now_);
  EXPECT_EQ(waiting.completed, 1);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none, Failure::none));
  EXPECT_THAT(take_states(), IsEmpty());
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
