#include "sluice/sharded_token_bucket.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <thread>

#include "algorithm/int128.h"
#include "algorithm/require_valid.h"
#include "sluice/limit.h"

namespace sluice {

namespace {

using internal::Bucket;

constexpr std::uint32_t kMostShares = 1'024;
constexpr std::uint64_t kPart = 8;  // of the burst, lies in the shares

std::uint32_t shares_of(const ShardedTokenBucket::Numbers& numbers) {
  algorithm::require_valid({.rate = numbers.rate, .period = numbers.period, .burst = numbers.burst});
  if (numbers.shares > kMostShares) {
    throw std::invalid_argument("sluice: shares: must be 0 … " + std::to_string(kMostShares) + ", is " +
                                std::to_string(numbers.shares));
  }
  const std::uint32_t processors = std::clamp(std::thread::hardware_concurrency(), 1U, kMostShares);
  return std::bit_ceil(numbers.shares != 0 ? numbers.shares : processors);
}

Wait time_to_fill(const ShardedTokenBucket::Numbers& numbers) {
  if (numbers.rate == 0) return Wait::never();
  const algorithm::Uint128 product =
      algorithm::Uint128{numbers.burst} * static_cast<std::uint64_t>(numbers.period.count());
  const algorithm::Uint128 ticks = (product + numbers.rate - 1) / numbers.rate;
  return Wait(std::chrono::nanoseconds(static_cast<std::int64_t>(
      std::min<algorithm::Uint128>(ticks, static_cast<std::uint64_t>(kLongestWait.count())))));
}

// Adds as many as keep to `most`; the rest is returned.
std::uint64_t add(std::atomic<std::uint64_t>& tokens, std::uint64_t more, std::uint64_t most) {
  std::uint64_t there = tokens.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t added = std::min(more, most - std::min(most, there));
    if (added == 0) return more;
    if (tokens.compare_exchange_weak(there, there + added, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      return more - added;
    }
  }
}

// Takes at most `most`.
std::uint64_t subtract(std::atomic<std::uint64_t>& tokens, std::uint64_t most) {
  std::uint64_t there = tokens.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t taken = std::min(there, most);
    if (taken == 0) return 0;
    if (tokens.compare_exchange_weak(there, there - taken, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      return taken;
    }
  }
}

}  // namespace

constinit thread_local std::uint32_t ShardedTokenBucket::processor_ = 0;
constinit thread_local std::uint32_t ShardedTokenBucket::calls_left_ = 0;

void ShardedTokenBucket::look_for_processor() noexcept {
  constexpr std::uint32_t kCalls = 256;
  const int processor = sched_getcpu();
  processor_ = processor < 0 ? 0 : static_cast<std::uint32_t>(processor);
  calls_left_ = kCalls - 1;
}

ShardedTokenBucket::ShardedTokenBucket(const Numbers& numbers, const Clock* clock)
    : clock_(clock),
      burst_(numbers.burst),
      count_(shares_of(numbers)),
      share_(burst_ / kPart / count_),
      fills_in_(time_to_fill(numbers)),
      shares_(std::make_unique<Share[]>(count_)),  // NOLINT(modernize-avoid-c-arrays)
      rest_(Bucket::Kind::tokens, {numbers.rate, numbers.period, burst_ - count_ * share_}) {
  for (std::uint32_t i = 0; i < count_; ++i) shares_[i].tokens = share_;
}

ShardedTokenBucket::~ShardedTokenBucket() = default;

// At least `most` tokens, where there are as many, and up to `more` beyond: first the processor's own, then the rest,
// then out of other shares. All are taken away before any is spent.
std::uint64_t ShardedTokenBucket::take(std::uint64_t most, std::uint64_t more, std::int64_t now) noexcept {
  std::uint64_t taken = subtract(own().tokens, most);
  if (taken < most) taken += rest_.acquire_up_to(most - taken + more, now).tokens;
  for (std::uint32_t i = 0; i < count_ && taken < most; ++i) taken += subtract(shares_[i].tokens, most - taken);
  return taken;
}

void ShardedTokenBucket::put(std::uint64_t tokens, std::int64_t now) noexcept {
  tokens = add(own().tokens, tokens, share_);
  if (tokens == 0) return;
  const Decision rest = rest_.peek(0, now);
  const std::uint64_t room = std::min(tokens, rest.limit - rest.remaining);
  rest_.refund(room, now);
  tokens -= room;
  for (std::uint32_t i = 0; i < count_ && tokens > 0; ++i) tokens = add(shares_[i].tokens, tokens, share_);
}

Decision ShardedTokenBucket::gather(std::uint64_t cost, std::int64_t now) noexcept {
  if (share_ == 0) return rest_.try_acquire(cost, now);
  constexpr int kTries = 4;
  Decision decision = look(cost, now);
  if (cost == 0) return decision;
  for (int i = 0; i < kTries && decision.allowed; ++i) {
    const std::uint64_t taken = take(cost, share_, now);
    if (taken >= cost) {
      put(taken - cost, now);
      return allowed(own().tokens.load(std::memory_order_relaxed));
    }
    put(taken, now);  // another thread was quicker
    decision = look(cost, now);
  }
  if (decision.allowed) {
    // They are there, but always under way between two threads.
    decision.allowed = false;
    decision.remaining += cost;
    decision.retry_after = Wait(std::chrono::nanoseconds(1));
    return decision;
  }
  // What the rest earns when it is full would be lost while there is room in the shares.
  const Decision rest = rest_.peek(0, now);
  if (rest.remaining != rest.limit) return decision;
  for (std::uint32_t i = 0; i < count_; ++i) {
    const std::uint64_t there = shares_[i].tokens.load(std::memory_order_relaxed);
    if (there >= share_) continue;
    const std::uint64_t granted = rest_.acquire_up_to(share_ - there, now).tokens;
    rest_.refund(add(shares_[i].tokens, granted, share_), now);
  }
  return decision;
}

Granted ShardedTokenBucket::gather_up_to(std::uint64_t most, std::int64_t now) noexcept {
  if (share_ == 0) return rest_.acquire_up_to(most, now);
  const std::uint64_t taken = take(most, 0, now);
  return {taken, look(0, now)};
}

Decision ShardedTokenBucket::look(std::uint64_t cost, std::int64_t now) const noexcept {
  if (share_ == 0) return rest_.peek(cost, now);
  std::uint64_t in_shares = 0;
  for (std::uint32_t i = 0; i < count_; ++i) in_shares += shares_[i].tokens.load(std::memory_order_relaxed);
  Decision decision = rest_.peek(cost > in_shares ? cost - in_shares : 0, now);
  // Of an allowed cost the rest has told what is left of it after its part.
  decision.remaining += decision.allowed && cost > in_shares ? 0 : in_shares - (decision.allowed ? cost : 0);
  decision.limit = burst_;
  if (cost > burst_) {
    decision.retry_after = Wait::never();
  } else if (decision.retry_after.is_never()) {
    decision.retry_after = fills_in_;  // more than the rest can hold: the shares must be filled, too
  }
  if (in_shares != count_ * share_ || cost != 0) decision.reset_after = fills_in_;
  return decision;
}

Decision ShardedTokenBucket::give_back(std::uint64_t cost, std::int64_t now) noexcept {
  put(std::min(cost, burst_), now);
  return look(0, now);
}

Decision ShardedTokenBucket::fill(std::int64_t now) noexcept {
  rest_.reset(now);
  for (std::uint32_t i = 0; i < count_; ++i) shares_[i].tokens.store(share_, std::memory_order_relaxed);
  return look(0, now);
}

}  // namespace sluice
