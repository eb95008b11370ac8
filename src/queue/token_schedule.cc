#include "queue/token_schedule.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace sluice::queue {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kTogether = kMillisecond / 4;
constexpr auto kLongest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / 4);

}  // namespace

TokenSchedule::TokenSchedule(const Limit& limit)
    : limit_(limit),
      slack_(length_of(1) >= kMillisecond ? 0 : kMillisecond),
      a_second_(1 + static_cast<std::uint64_t>(Wide{limit.rate} * kSecond /
                                               static_cast<std::uint64_t>(limit.period.count()))),
      // The one more leaves room for this: what is sent now arrives a little later, and not always equally so.
      window_(kSecond + std::min(kMillisecond, length_of(1) / 2)) {
  assert(limit.rate > 0);
}

std::int64_t TokenSchedule::length_of(std::uint64_t count) const {
  const Wide length = Wide{count} * static_cast<std::uint64_t>(limit_.period.count()) / limit_.rate;
  return static_cast<std::int64_t>(length < kLongest ? static_cast<std::uint64_t>(length) : kLongest);
}

void TokenSchedule::add(std::uint64_t count, std::int64_t last) {
  if (count == 0) return;
  spans_.push_back({count, last});
  left_ += count;
  last_ = std::max(last_, last);
}

std::int64_t TokenSchedule::due(std::uint64_t cost) const {
  if (cost > left_ || cost == 0) return cost == 0 ? std::numeric_limits<std::int64_t>::min() : kNone;
  std::uint64_t needed = cost;
  auto span = spans_.begin();
  while (needed > span->count) needed -= (span++)->count;
  std::int64_t at = std::max(span->last - length_of(span->count - needed), next_);
  std::uint64_t count = used_count_;
  for (auto used = used_.begin(); used != used_.end() && count + cost > a_second_; ++used) {
    at = std::max(at, used->last + window_);
    count -= used->count;
  }
  return at;
}

void TokenSchedule::use(std::uint64_t cost, std::int64_t now) {
  assert(due(cost) <= now);
  if (cost == 0) return;
  next_ = std::max(next_, now - slack_) + length_of(cost) / 2;
  while (!used_.empty() && used_.front().last <= now - window_) {
    used_count_ -= used_.front().count;
    used_.pop_front();
  }
  // What lies together is kept as one, as if all of it were the last: so it must begin and end together, or a long run
  // would be held back a second later until its very end.
  if (slack_ > 0 && !used_.empty() && now - used_.back().first < kTogether) {
    used_.back().count += cost;
    used_.back().last = now;
  } else {
    used_.push_back({cost, now, now});
  }
  used_count_ += cost;
  left_ -= cost;
  while (cost > 0) {
    Span& span = spans_.front();
    const std::uint64_t part = std::min(cost, span.count);
    span.count -= part;
    cost -= part;
    if (span.count == 0) spans_.pop_front();
  }
}

std::uint64_t TokenSchedule::clear() {
  spans_.clear();
  last_ = 0;
  return std::exchange(left_, 0);
}

}  // namespace sluice::queue
