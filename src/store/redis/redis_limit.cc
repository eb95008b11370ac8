#include "store/redis/redis_limit.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "algorithm/calendar.h"
#include "algorithm/int128.h"
#include "store/redis/exactness.h"

namespace sluice::store::redis {

using algorithm::CompiledLimit;
using algorithm::Int128;
using algorithm::Tick;
using algorithm::Uint128;

namespace {

constexpr char kVersion = '\x01';
constexpr std::size_t kBucketHead = 26;
constexpr std::size_t kBucketSize = 50;
constexpr std::size_t kWindowHead = 11;
constexpr std::size_t kWindowSize = 35;
constexpr std::int64_t kExact = std::int64_t{1} << 53;

static_assert(std::endian::native == std::endian::little, "states are little-endian doubles");

// Every number here is whole and below 2^53, so the double is exact.
void append_double(std::string& out, std::int64_t number) {
  const auto value = static_cast<double>(number);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}
void append_double(std::string& out, std::uint64_t number) { append_double(out, static_cast<std::int64_t>(number)); }

// A whole number from least to most at `offset` of `bytes`.
bool read_whole(std::string_view bytes, std::size_t offset, std::int64_t least, std::int64_t most, std::int64_t& out) {
  double value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  const bool within = value >= static_cast<double>(least) && value <= static_cast<double>(most);  // NaN is not
  if (!within || value != std::floor(value)) return false;
  out = static_cast<std::int64_t>(value);
  return true;
}

// A number that stands for a calendar in the state's head, below 2^48.
std::int64_t calendar_shape(const Calendar& calendar) {
  const std::string text = std::to_string(static_cast<int>(calendar.unit)) + ' ' + std::to_string(calendar.anchor_day) +
                           ' ' + calendar.timezone;
  return static_cast<std::int64_t>(XXH64(text.data(), text.size(), 0) >> 16U);
}

std::int64_t microseconds(std::chrono::nanoseconds duration) { return duration.count() / 1'000; }

}  // namespace

RedisLimit::RedisLimit(const Limit& limit, CompiledLimit compiled,
                       std::shared_ptr<const algorithm::CalendarWindows> calendar)
    : numbers_(limit), compiled_(std::move(compiled)), calendar_(std::move(calendar)) {
  argument_ += kVersion;
  const auto period = static_cast<std::uint64_t>(microseconds(limit.period));
  if (limit.algorithm == Algorithm::token_bucket) {
    const std::uint64_t divisor = std::gcd(limit.rate, period);
    argument_ += 't';
    append_double(argument_, limit.burst);
    append_double(argument_, limit.rate / divisor);
    append_double(argument_, period / divisor);
    head_ = argument_;
    return;
  }
  argument_ += 'f';
  argument_ += static_cast<char>(limit.align);
  append_double(argument_, calendar_ ? static_cast<std::uint64_t>(calendar_shape(limit.calendar)) : period);
  head_ = argument_;
  append_double(argument_, limit.rate);
  argument_ += limit.count_denied ? '\x01' : '\x00';
}

Result<std::shared_ptr<const RedisLimit>> RedisLimit::compile(const Limit& limit) {
  if (auto problem = inexact_in_redis(limit)) return Error{*std::move(problem)};
  std::shared_ptr<const algorithm::CalendarWindows> calendar;
  if (limit.algorithm == Algorithm::fixed_window && limit.align == Align::calendar) {
    auto opened = algorithm::open_calendar(limit.calendar, Tick::microsecond);
    if (!opened) return opened.error();
    calendar = *std::move(opened);
  }
  auto compiled = CompiledLimit::compile(limit, Tick::microsecond, algorithm::open_calendar);
  if (!compiled) return compiled.error();
  return std::shared_ptr<const RedisLimit>(new RedisLimit(limit, *std::move(compiled), std::move(calendar)));
}

void RedisLimit::append_argument(std::string& out, Time caller) const {
  out += argument_;
  if (!calendar_) return;
  const algorithm::Window present = calendar_->window(compiled_.instant(caller));
  const algorithm::Window previous = calendar_->window(present.start - 1);
  const algorithm::Window next = calendar_->window(present.start + present.length);
  append_double(out, previous.start);
  append_double(out, present.start);
  append_double(out, next.start);
  const algorithm::Window after_next = calendar_->window(next.start + next.length);
  append_double(out, after_next.start);
  append_double(out, after_next.start + after_next.length);
}

std::optional<RedisLimit::State> RedisLimit::read_state(const std::optional<std::string_view>& value,
                                                        std::int64_t server_now, std::int64_t trusted_lead) const {
  if (!value) return State{};
  return numbers_.algorithm == Algorithm::token_bucket ? read_bucket(*value, server_now, trusted_lead)
                                                       : read_window(*value, server_now, trusted_lead);
}

std::optional<RedisLimit::State> RedisLimit::read_bucket(std::string_view value, std::int64_t server_now,
                                                         std::int64_t trusted_lead) const {
  if (value.size() != kBucketSize || value.substr(0, 2) != head_.substr(0, 2)) return std::nullopt;
  std::int64_t burst = 0;
  std::int64_t c = 0;
  std::int64_t p = 0;
  std::int64_t tokens = 0;
  std::int64_t part = 0;
  std::int64_t at = 0;
  constexpr auto most = static_cast<std::int64_t>(kMaxTokens);
  if (!read_whole(value, 2, 1, most, burst) || !read_whole(value, 10, 0, static_cast<std::int64_t>(kMaxRate), c) ||
      !read_whole(value, 18, 1, microseconds(kMaxPeriod), p) || !read_whole(value, 26, -most, burst, tokens) ||
      !read_whole(value, 34, 0, p - 1, part) || !read_whole(value, 42, 0, kExact - 1, at)) {
    return std::nullopt;
  }
  const Int128 missing = static_cast<Int128>(burst - tokens) * p - part;
  if (missing < 0) return std::nullopt;
  State state;
  state.first = static_cast<std::uint64_t>(static_cast<Uint128>(missing));
  state.second = static_cast<std::uint64_t>(static_cast<Uint128>(missing) >> 64U);
  state.last = at;

  const bool same = value.substr(0, kBucketHead) == head_;
  std::optional<CompiledLimit> made_with;
  if (!same) {
    const Limit before{.algorithm = Algorithm::token_bucket,
                       .rate = static_cast<std::uint64_t>(c),
                       .period = std::chrono::microseconds(p),
                       .burst = static_cast<std::uint64_t>(burst)};
    auto compiled = CompiledLimit::compile(before, Tick::microsecond);
    if (!compiled) return std::nullopt;
    made_with = *std::move(compiled);
  }
  const CompiledLimit& before = made_with ? *made_with : compiled_;
  if (at > server_now) {
    const std::int64_t full = before.view(state, at).reset_after;
    const std::int64_t longest = algorithm::longest_wait(Tick::microsecond);
    state.last = std::min(at, server_now + std::max(trusted_lead, std::min(full, longest)));
  }
  if (made_with) compiled_.convert(state, *made_with, server_now);
  return state;
}

std::int64_t RedisLimit::window_start(std::int64_t at) const {
  return calendar_ ? calendar_->window(at).start : at - at % microseconds(numbers_.period);
}

std::int64_t RedisLimit::window_length(std::int64_t at) const {
  return calendar_ ? calendar_->window(at).length : microseconds(numbers_.period);
}

std::optional<RedisLimit::State> RedisLimit::read_window(std::string_view value, std::int64_t server_now,
                                                         std::int64_t trusted_lead) const {
  if (value.size() != kWindowSize || value.substr(0, 2) != head_.substr(0, 2)) return std::nullopt;
  std::int64_t start = 0;
  std::int64_t count = 0;
  std::int64_t at = 0;
  constexpr auto most = static_cast<std::int64_t>(2 * kMaxTokens);
  if (!read_whole(value, 27, 0, kExact - 1, at) ||
      !read_whole(value, 11, -algorithm::longest_wait(Tick::microsecond), at, start) ||
      !read_whole(value, 19, 0, most, count)) {
    return std::nullopt;
  }
  if (value.substr(0, kWindowHead) != head_) return State{};
  if (at > server_now) {
    const std::int64_t latest = server_now + std::max(trusted_lead, window_length(server_now));
    if (at > latest) {
      start = numbers_.align == Align::first_hit ? start - (at - latest) : window_start(latest);
      at = latest;
    }
  }
  return State{.first = static_cast<std::uint64_t>(count), .second = static_cast<std::uint64_t>(start), .last = at};
}

}  // namespace sluice::store::redis
