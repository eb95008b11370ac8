#include "store/redis/redis_limit.h"

#include <xxhash.h>

#include <numeric>
#include <utility>

#include "algorithm/calendar.h"
#include "store/redis/exactness.h"
#include "store/redis/packed.h"

namespace sluice::store::redis {

using algorithm::CompiledLimit;
using algorithm::Tick;

namespace {

constexpr char kVersion = '\x01';

// A number that stands for a calendar in the state's head, below 2^48.
std::uint64_t calendar_shape(const Calendar& calendar) {
  const std::string text = std::to_string(static_cast<int>(calendar.unit)) + ' ' + std::to_string(calendar.anchor_day) +
                           ' ' + calendar.timezone;
  return XXH64(text.data(), text.size(), 0) >> 16U;
}

std::uint64_t microseconds(std::chrono::nanoseconds duration) {
  return static_cast<std::uint64_t>(duration.count()) / 1'000;
}

// Tokens per µs in lowest terms.
std::pair<std::uint64_t, std::uint64_t> lowest_terms(const Limit& limit) {
  const std::uint64_t period = microseconds(limit.period);
  const std::uint64_t divisor = std::gcd(limit.rate, period);
  return {limit.rate / divisor, period / divisor};
}

void append_bucket(std::string& out, std::uint64_t burst, std::uint64_t tokens, std::uint64_t ticks) {
  append_packed<7>(out, burst);
  append_packed<5>(out, tokens);
  append_packed<6>(out, ticks);
}

}  // namespace

RedisLimit::RedisLimit(const Limit& limit, Twin twin, std::shared_ptr<const algorithm::CalendarWindows> calendar)
    : numbers_(limit), twin_(std::move(twin)), calendar_(std::move(calendar)) {
  const auto [c, p] = lowest_terms(limit);
  head_ += kVersion;
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
      head_ += 't';
      append_bucket(head_, limit.burst, c, p);
      argument_ = head_;
      return;
    case Algorithm::leaky_bucket:
      head_ += 'l';
      append_bucket(head_, limit.queue + 1, limit.rate, microseconds(limit.period));
      argument_ = head_;
      append_packed<5>(argument_, c);
      append_packed<6>(argument_, p);
      return;
    case Algorithm::fixed_window:
      head_ += 'f';
      append_packed<1>(head_, static_cast<std::uint64_t>(limit.align));
      append_packed<6>(head_, calendar_ ? calendar_shape(limit.calendar) : microseconds(limit.period));
      argument_ = head_;
      append_packed<5>(argument_, limit.rate);
      append_packed<1>(argument_, limit.count_denied ? 1 : 0);
      return;
    case Algorithm::sliding_window:
      head_ += 's';
      append_packed<2>(head_, limit.slots);
      append_packed<6>(head_, microseconds(limit.period) / limit.slots);
      break;
    case Algorithm::sliding_log:
      head_ += 'g';
      append_packed<6>(head_, microseconds(limit.period));
      break;
    case Algorithm::concurrency:
      head_ += 'c';
      append_packed<6>(head_, microseconds(limit.ttl));
      break;
  }
  argument_ = head_;
  append_packed<5>(argument_, limit.rate);
}

Result<std::shared_ptr<const RedisLimit>> RedisLimit::compile(const Limit& limit) {
  if (auto problem = inexact_in_redis(limit)) return Error{*std::move(problem)};
  Twin twin;
  std::shared_ptr<const algorithm::CalendarWindows> calendar;
  if (limit.algorithm == Algorithm::sliding_window && limit.slots > 1) {
    const auto period = static_cast<std::int64_t>(microseconds(limit.period));
    twin = algorithm::SlidingWindow(limit.rate, period, limit.slots);
  } else if (limit.algorithm != Algorithm::sliding_log && limit.algorithm != Algorithm::concurrency) {
    if (limit.algorithm == Algorithm::fixed_window && limit.align == Align::calendar) {
      auto opened = algorithm::open_calendar(limit.calendar, Tick::microsecond);
      if (!opened) return opened.error();
      calendar = *std::move(opened);
    }
    auto compiled = CompiledLimit::compile(limit, Tick::microsecond, algorithm::open_calendar);
    if (!compiled) return compiled.error();
    twin = *std::move(compiled);
  }
  return std::shared_ptr<const RedisLimit>(new RedisLimit(limit, std::move(twin), std::move(calendar)));
}

std::size_t RedisLimit::weight() const {
  constexpr std::size_t count_size = 7;
  constexpr std::size_t sorted_set = 2'000;  // some 10 µs of the server's time, several times those of a string
  switch (numbers_.algorithm) {
    case Algorithm::sliding_window:
      return 2 * count_size * (numbers_.slots - 1);
    case Algorithm::sliding_log:
    case Algorithm::concurrency:
      return sorted_set;
    case Algorithm::token_bucket:
    case Algorithm::leaky_bucket:
    case Algorithm::fixed_window:
      break;
  }
  return 0;
}

void RedisLimit::append_argument(std::string& out, Time caller) const {
  out += argument_;
  if (!calendar_) return;
  const auto edge = [&out](std::int64_t at) { append_packed<8>(out, static_cast<std::uint64_t>(at)); };
  const auto now = std::get<CompiledLimit>(twin_).instant(caller);
  const algorithm::Window present = calendar_->window(now);
  const algorithm::Window previous = calendar_->window(present.start - 1);
  const algorithm::Window next = calendar_->window(present.start + present.length);
  const algorithm::Window after_next = calendar_->window(next.start + next.length);
  edge(previous.start);
  edge(present.start);
  edge(next.start);
  edge(after_next.start);
  edge(after_next.start + after_next.length);
}

}  // namespace sluice::store::redis
