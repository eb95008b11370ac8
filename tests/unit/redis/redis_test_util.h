// Replies and checks for tests without a server.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/limit.h"
#include "store/redis/batch.h"
#include "store/redis/check_call.h"
#include "store/redis/packed.h"
#include "store/redis/redis_limit.h"
#include "store/redis/reply_reader.h"
#include "store/store.h"

namespace sluice::store::redis::testing {

inline constexpr std::int64_t kNow = 1'767'225'600'000'000;  // 2026-01-01 00:00 UTC, µs

inline Reply parse(std::string_view bytes) {
  ReplyReader reader;
  reader.feed(bytes);
  return reader.next();
}

inline std::string bulk(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

/// A script's answer: the time, the verdicts, a value for each key ("-" stands for none).
inline std::string answer(std::int64_t now, std::string_view verdicts, const std::vector<std::string>& values) {
  std::string bytes = "*" + std::to_string(2 + values.size()) + "\r\n:" + std::to_string(now) + "\r\n" + bulk(verdicts);
  for (const std::string& value : values) bytes += value == "-" ? "$-1\r\n" : bulk(value);
  return bytes;
}

/// A stored token bucket: whole tokens (below 0: a debt) and 1/p tokens.
inline std::string bucket_state(std::uint64_t burst, std::uint64_t c, std::uint64_t p, std::int64_t tokens,
                                std::uint64_t part, std::int64_t at) {
  std::string bytes = "\x01t";
  append_packed<7>(bytes, burst);
  append_packed<5>(bytes, c);
  append_packed<6>(bytes, p);
  append_packed<7>(bytes, burst - static_cast<std::uint64_t>(tokens));
  append_packed<6>(bytes, part);
  append_packed<7>(bytes, static_cast<std::uint64_t>(at));
  append_packed<7>(bytes, static_cast<std::uint64_t>(at) + 1'000'000);  // kept until then
  return bytes;
}

/// A stored fixed window; align 0 epoch, 1 first_hit.
inline std::string window_state(char align, std::uint64_t period, std::int64_t start, std::uint64_t count,
                                std::int64_t at) {
  std::string bytes = "\x01";
  bytes += 'f';
  bytes += align;
  append_packed<6>(bytes, period);
  append_packed<8>(bytes, static_cast<std::uint64_t>(start));
  append_packed<7>(bytes, count);
  append_packed<7>(bytes, static_cast<std::uint64_t>(at));
  return bytes;
}

inline CountedLimit bucket(std::uint64_t rate, std::uint64_t burst,
                           std::chrono::nanoseconds period = std::chrono::seconds(1)) {
  return {.numbers = {.algorithm = Algorithm::token_bucket, .rate = rate, .period = period, .burst = burst},
          .identity = "shop/user;tb"};
}

class TestCheck final : public Check {
 public:
  explicit TestCheck(std::vector<Charge> some) : held_charges_(std::move(some)) {
    held_decisions_.resize(held_charges_.size());
    charges = held_charges_;
    decisions = held_decisions_;
    for (const Charge& charge : held_charges_) limits.push_back(*RedisLimit::compile(charge.limit->numbers));
  }
  void complete() override { ++completed; }

  std::vector<std::shared_ptr<const RedisLimit>> limits;
  int completed = 0;

 private:
  std::vector<Charge> held_charges_;
  std::vector<Decision> held_decisions_;
};

inline bool add(Batch& batch, TestCheck& check, std::int64_t deadline = 0) {
  return batch.add(check, check.limits, "sluice:", Time{}, deadline);
}

/// The call of a batch, without the script's name.
inline std::string call_of(Batch& batch) {
  batch.prepare();
  std::string text;
  append_call(text, batch);
  return text;
}

/// Reads the answer to a call of this check alone.
inline Failure read_answer(std::string_view bytes, TestCheck& check) {
  Batch batch;
  if (!add(batch, check)) return Failure::unsupported;
  batch.prepare();
  const Failure failure = AnswerReader().read(*parse(bytes), batch);
  return failure != Failure::none ? failure : batch.requests()[0].failure;
}

}  // namespace sluice::store::redis::testing
