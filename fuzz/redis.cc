// What a Redis server may send: any bytes, in any pieces, to a client with checks in flight. The first byte says how
// long the pieces are; the whole is also read as a URL.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "store/redis/client.h"
#include "store/redis/script.h"
#include "store/redis/url.h"

namespace {

using namespace sluice;                // NOLINT(google-build-using-namespace)
using namespace sluice::store;         // NOLINT(google-build-using-namespace)
using namespace sluice::store::redis;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kStart = 1'000'000'000;

struct FuzzedCheck final : Check {
  FuzzedCheck(const CountedLimit& bucket, const CountedLimit& window)
      : own_charges{{.limit = &bucket, .key = "k"}, {.limit = &window, .key = "k"}} {
    charges = own_charges;
    decisions = own_decisions;
  }
  void complete() override {
    if (++completed > 1) std::abort();
  }
  Charge own_charges[2];
  Decision own_decisions[2];
  int completed = 0;
};

class Harness final : private Client::Owner {
 public:
  void run(std::string_view bytes, std::size_t piece) {
    client_.begin_connect(kStart);
    client_.connected(kStart);
    client_.received("+OK\r\n", kStart);
    FuzzedCheck first(bucket_, window_);
    FuzzedCheck second(bucket_, window_);
    FuzzedCheck third(bucket_, window_);
    submit(first);
    client_.flush(kStart);
    submit(second);  // together with the third, as the first has left
    submit(third);
    client_.flush(kStart);
    while (!bytes.empty()) {
      client_.received(bytes.substr(0, piece), kStart);
      bytes.remove_prefix(std::min(piece, bytes.size()));
    }
    client_.wake(kStart + 1'000'000'000);
    client_.closed(kStart + 1'000'000'000);
    // Answered or failed: never forgotten.
    if (first.completed != 1 || second.completed != 1 || third.completed != 1) std::abort();
  }

 private:
  void submit(FuzzedCheck& check) {
    const std::shared_ptr<const RedisLimit> limits[] = {bucket_limit_, window_limit_};
    if (client_.submit(check, limits, Time{}, kStart) != Failure::none) std::abort();
  }
  void done(Check& check, Failure failure, std::int64_t /*at*/) override {
    check.failure = failure;
    if (failure == Failure::none) {
      for (const Decision& decision : check.decisions) {
        if (decision.remaining > decision.limit) std::abort();
      }
    }
    check.complete();
  }
  void bad_key(Failure /*failure*/, std::string_view /*words*/) override {}
  void call_sent(std::size_t /*requests*/) override {}

  const CountedLimit bucket_{.numbers = {.rate = 10, .burst = 30}, .identity = "b"};
  const CountedLimit window_{.numbers = {.algorithm = Algorithm::fixed_window, .rate = 5}, .identity = "w"};
  const std::shared_ptr<const RedisLimit> bucket_limit_ = *RedisLimit::compile(bucket_.numbers);
  const std::shared_ptr<const RedisLimit> window_limit_ = *RedisLimit::compile(window_.numbers);
  const Hello hello_;
  Node node_{{}, [](bool /*up*/, Failure /*reason*/, std::string_view /*detail*/) {}};
  Client client_{hello_, check_script(), {}, node_, *this};
};

// The same bytes while a connection begins that asks what kind of server it is.
class Greeting final : private Connection::Owner {
 public:
  void run(std::string_view bytes, std::size_t piece) {
    connection_.open();
    while (!bytes.empty() && connection_.feed(bytes.substr(0, piece)) == Failure::none) {
      bytes.remove_prefix(std::min(piece, bytes.size()));
    }
    if (greetings_ > 1 || (greetings_ == 1) != connection_.is_ready()) std::abort();
    connection_.close(Failure::lost);
  }

 private:
  void logged_in() override { ++greetings_; }
  void answered(Batch& /*batch*/, const redisReply& /*reply*/) override { std::abort(); }
  void failed(Batch& /*batch*/, Failure /*failure*/) override { std::abort(); }

  const Hello hello_{.user = {}, .password = "pw", .database = 1, .wants_master = true, .wants_alone = true};
  Connection connection_{hello_, check_script(), *this};
  int greetings_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  Harness().run(bytes.substr(1), 1U + data[0]);
  Greeting().run(bytes.substr(1), 1U + data[0]);
  if (const auto target = parse_url(bytes); target && target->to_text().empty()) std::abort();
  return 0;
}
