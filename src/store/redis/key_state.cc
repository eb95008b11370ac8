#include "store/redis/key_state.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "algorithm/decision_of.h"
#include "algorithm/int128.h"
#include "algorithm/ticks.h"
#include "store/redis/packed.h"

namespace sluice::store::redis {

using algorithm::CompiledLimit;
using algorithm::Int128;
using algorithm::kNever;
using algorithm::SlidingWindow;
using algorithm::Tick;
using algorithm::Uint128;
using algorithm::Verdict;
using algorithm::View;

namespace {

constexpr std::int64_t kExact = std::int64_t{1} << 53;
constexpr std::size_t kKindEnd = 2;  // a value begins with version and kind
constexpr std::size_t kBucketHead = 20;
constexpr std::size_t kBucketSize = 47;  // the last 7 are the script's own
constexpr std::size_t kWindowHead = 9;
constexpr std::size_t kWindowSize = 31;
constexpr std::size_t kSlotsHead = 10;
constexpr std::size_t kSlotsFirst = 24;
constexpr std::size_t kCountSize = 7;
constexpr std::uint64_t kDeep = (std::uint64_t{1} << 48U) - 1;  // instead of parts of a token: the backlog is in µs
constexpr std::int64_t kLongest = algorithm::longest_wait(Tick::microsecond);

std::int64_t in_ticks(std::chrono::nanoseconds duration) { return duration.count() / 1'000; }

// A wait that begins only after `lead` ticks; no wait is none.
std::int64_t postponed(std::int64_t wait, std::int64_t lead) {
  if (wait == 0 || wait == kNever) return wait;
  return std::min(wait + lead, kLongest);
}

}  // namespace

bool KeyState::read(const RedisLimit& limit, const std::optional<std::string_view>& value, std::int64_t now,
                    std::int64_t trusted_lead) {
  limit_ = &limit;
  now_ = now;
  trusted_lead_ = trusted_lead;
  is_sound_ = true;
  const Algorithm algorithm = limit.numbers().algorithm;
  if (algorithm == Algorithm::sliding_log || algorithm == Algorithm::concurrency) {
    state_ = Figures{.at = now, .waits = {}};
    return !value || read_figures(*value);
  }
  if (std::holds_alternative<SlidingWindow>(limit.twin())) {
    state_ = SlidingWindow::SlottedState{};
  } else {
    state_ = CompiledLimit::State{};
  }
  if (!value) return true;
  if (value->substr(0, kKindEnd) != limit.head().substr(0, kKindEnd)) return false;
  if (algorithm == Algorithm::sliding_window) return read_slots(*value);
  return algorithm == Algorithm::fixed_window ? read_window(*value) : read_bucket(*value);
}

bool KeyState::read_bucket(std::string_view value) {
  if (value.size() != kBucketSize) return false;
  Unpacker bytes(value.substr(kKindEnd));
  const auto burst = bytes.take<7>();
  const auto rate = bytes.take<5>();
  const auto period = bytes.take<6>();
  const auto missing = bytes.take<7>();
  const auto part = bytes.take<6>();
  const auto at = bytes.take_signed<7>();
  const bool is_leaky = limit_->numbers().algorithm == Algorithm::leaky_bucket;
  const bool is_deep = is_leaky && part == kDeep;
  if (burst < 1 || burst > kMaxTokens || rate > kMaxRate || period < 1 || at >= kExact) return false;
  const std::uint64_t divisor = std::gcd(rate, period);
  const std::uint64_t c = rate / divisor;
  const std::uint64_t p = period / divisor;
  if (is_deep && missing > static_cast<std::uint64_t>(kLongest)) return false;
  if (!is_deep && (part >= p || missing > burst + kMaxTokens || (missing == 0 && part > 0))) return false;
  const Uint128 parts = is_deep ? Uint128{missing} * c : Uint128{missing} * p - part;
  CompiledLimit::State state{
      .first = static_cast<std::uint64_t>(parts), .second = static_cast<std::uint64_t>(parts >> 64U), .last = at};

  const auto& compiled = std::get<CompiledLimit>(limit_->twin());
  std::optional<CompiledLimit> made_with;
  if (value.substr(0, kBucketHead) != limit_->head()) {
    auto before = CompiledLimit::compile({.algorithm = limit_->numbers().algorithm,
                                          .rate = rate,
                                          .period = std::chrono::microseconds(period),
                                          .burst = burst,
                                          .queue = burst - 1},
                                         Tick::microsecond);
    if (!before) return false;
    made_with = *std::move(before);
  }
  const CompiledLimit& before = made_with ? *made_with : compiled;
  if (at > now_) {
    const std::int64_t full = std::min(before.view(state, at).reset_after, kLongest);
    state.last = std::min(at, now_ + std::max(trusted_lead_, full));
  }
  if (made_with) compiled.convert(state, *made_with, now_);
  state_ = state;
  return true;
}

bool KeyState::read_window(std::string_view value) {
  if (value.size() != kWindowSize) return false;
  if (value.substr(0, kWindowHead) != limit_->head()) return true;  // other windows: starts anew
  Unpacker bytes(value.substr(kWindowHead));
  auto start = bytes.take_signed<8>();
  auto count = bytes.take<7>();
  auto at = bytes.take_signed<7>();
  if (at >= kExact || start > at || start < -kLongest || count > 2 * kMaxTokens) return false;
  if (at > now_) {
    const std::int64_t period = in_ticks(limit_->numbers().period);
    const auto* calendar = limit_->calendar();
    const std::int64_t length = calendar != nullptr ? calendar->window(now_).length : period;
    const std::int64_t latest = now_ + std::max(trusted_lead_, length);
    if (at > latest) {
      if (limit_->numbers().align == Align::first_hit) {
        start -= at - latest;
      } else {
        start = calendar != nullptr ? calendar->window(latest).start : latest - latest % period;
      }
      at = latest;
    }
  }
  if (limit_->numbers().align == Align::epoch) {
    // As in the script, what was not taken in this very window is none of its.
    const std::int64_t moment = std::max(now_, at);
    const std::int64_t edge = moment - moment % in_ticks(limit_->numbers().period);
    if (start != edge) count = 0;
    start = edge;
  }
  state_ = CompiledLimit::State{.first = count, .second = static_cast<std::uint64_t>(start), .last = at};
  return true;
}

bool KeyState::read_slots(std::string_view value) {
  if (value.substr(0, kSlotsHead) != limit_->head()) return true;  // other slots: starts anew
  const std::size_t slots = limit_->numbers().slots;
  if (value.size() != kSlotsFirst + kCountSize * (slots + 1)) return false;
  Unpacker bytes(value.substr(kSlotsHead));
  auto at = bytes.take_signed<7>();
  const auto sum = bytes.take<7>();
  if (at >= kExact) return false;
  const std::int64_t width = in_ticks(limit_->numbers().period) / static_cast<std::int64_t>(slots);
  at = std::min(at, std::max(now_, now_ + std::max(trusted_lead_, width * static_cast<std::int64_t>(slots))));
  auto* many = std::get_if<SlidingWindow::SlottedState>(&state_);
  if (many != nullptr) many->counts.assign(slots + 1, 0);
  CompiledLimit::State two{.first = 0, .second = 0, .last = at};
  // What has left altogether says nothing.
  if (std::max(now_, at) / width - at / width > static_cast<std::int64_t>(slots)) return true;
  const std::int64_t oldest = at / width - static_cast<std::int64_t>(slots);
  std::uint64_t counted = 0;
  for (std::size_t i = 0; i <= slots; ++i) {
    const auto count = bytes.take<7>();
    counted += count;
    if (count > 2 * kMaxTokens || counted > 2 * kMaxTokens) {
      is_sound_ = false;
      return true;
    }
    const auto size = static_cast<std::int64_t>(slots) + 1;
    // Where the algorithm keeps the count of that slot.
    const std::int64_t place = (oldest + static_cast<std::int64_t>(i)) % size;
    const auto index = static_cast<std::size_t>(place < 0 ? place + size : place);
    if (many != nullptr) {
      many->counts[index] = count;
    } else {
      (index == 0 ? two.first : two.second) = count;
    }
  }
  if (many != nullptr) {
    many->last = at;
  } else {
    state_ = two;
  }
  is_sound_ = counted == sum;
  return true;
}

bool KeyState::read_figures(std::string_view value) {
  Unpacker bytes(value);
  Figures figures{.used = bytes.take<7>(), .at = bytes.take_signed<7>(), .waits = {}};
  if (limit_->numbers().algorithm == Algorithm::concurrency) figures.ids = bytes.take<7>();
  figures.newest = bytes.take_signed<7>();
  figures.waits = bytes.rest();
  if (bytes.was_short() || figures.used > 2 * kMaxTokens || figures.at < now_ || figures.at >= kExact) return false;
  state_ = figures;
  return true;
}

// How long an entry counts, or a lease is held.
std::int64_t KeyState::span() const {
  const Limit& numbers = limit_->numbers();
  return in_ticks(numbers.algorithm == Algorithm::concurrency ? numbers.ttl : numbers.period);
}

Verdict KeyState::judge_figures(Figures& figures, std::uint64_t cost) {
  const std::uint64_t rate = limit_->numbers().rate;
  if (cost == 0) return {};
  if (cost > rate) return {.fits = false, .retry_after = kNever};
  if (figures.used + cost <= rate) return {};
  Unpacker bytes(figures.waits);
  std::int64_t until = bytes.take_signed<7>();
  figures.waits = bytes.rest();
  if (limit_->numbers().algorithm == Algorithm::sliding_log) until += span();
  is_sound_ = is_sound_ && !bytes.was_short() && until > figures.at;
  return {.fits = false, .retry_after = until - figures.at};
}

Verdict KeyState::judge(std::uint64_t cost) {
  if (const auto* state = std::get_if<CompiledLimit::State>(&state_)) {
    return std::get<CompiledLimit>(limit_->twin()).judge(*state, now_, cost);
  }
  if (const auto* state = std::get_if<SlidingWindow::SlottedState>(&state_)) {
    return std::get<SlidingWindow>(limit_->twin()).judge(*state, now_, cost);
  }
  return judge_figures(std::get<Figures>(state_), cost);
}

void KeyState::take(std::uint64_t cost) {
  if (cost == 0) return;
  if (auto* state = std::get_if<CompiledLimit::State>(&state_)) {
    std::get<CompiledLimit>(limit_->twin()).take(*state, now_, cost);
  } else if (auto* slots = std::get_if<SlidingWindow::SlottedState>(&state_)) {
    std::get<SlidingWindow>(limit_->twin()).take(*slots, now_, cost);
  } else {
    auto& figures = std::get<Figures>(state_);
    figures.used += cost;
    const bool is_log = limit_->numbers().algorithm == Algorithm::sliding_log;
    figures.newest = std::max(figures.newest, is_log ? figures.at : figures.at + span());
    figures.ids = std::max(figures.ids + 1, static_cast<std::uint64_t>(figures.at));
  }
}

void KeyState::miss(std::uint64_t cost) {
  if (auto* state = std::get_if<CompiledLimit::State>(&state_)) {
    std::get<CompiledLimit>(limit_->twin()).count_denied(*state, now_, cost);
  }
}

View KeyState::view() const {
  if (const auto* state = std::get_if<CompiledLimit::State>(&state_)) {
    return std::get<CompiledLimit>(limit_->twin()).view(*state, now_);
  }
  if (const auto* state = std::get_if<SlidingWindow::SlottedState>(&state_)) {
    return std::get<SlidingWindow>(limit_->twin()).view(*state, now_);
  }
  const auto& figures = std::get<Figures>(state_);
  const std::uint64_t rate = limit_->numbers().rate;
  const bool is_log = limit_->numbers().algorithm == Algorithm::sliding_log;
  const std::int64_t end = is_log ? figures.newest + span() : figures.newest;
  return {.limit = rate,
          .remaining = figures.used < rate ? rate - figures.used : 0,
          .reset_after = figures.newest == 0 ? 0 : end - figures.at};
}

std::int64_t KeyState::changed_at() const {
  if (const auto* state = std::get_if<CompiledLimit::State>(&state_)) return state->last;
  if (const auto* state = std::get_if<SlidingWindow::SlottedState>(&state_)) return state->last;
  return std::get<Figures>(state_).at;
}

Decision KeyState::decision(Verdict verdict) const {
  View figures = view();
  // Waits count from the state's own time, which only comes when the server's clock has made up its lead.
  const std::int64_t lead = changed_at() - std::min(changed_at(), now_);
  const std::int64_t distrusted = std::max<std::int64_t>(0, lead - trusted_lead_);
  verdict.retry_after = postponed(verdict.retry_after, distrusted);
  verdict.delay = postponed(verdict.delay, distrusted);
  figures.reset_after = postponed(figures.reset_after, distrusted);
  Decision decision = algorithm::decision_of(verdict, figures, Tick::microsecond);
  decision.source = Source::redis;
  return decision;
}

std::uint64_t KeyState::lease() const {
  const auto* figures = std::get_if<Figures>(&state_);
  return figures == nullptr ? 0 : figures->ids;
}

}  // namespace sluice::store::redis
