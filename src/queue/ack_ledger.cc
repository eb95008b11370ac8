#include "queue/ack_ledger.h"

#include <algorithm>

namespace sluice::queue::rabbit {
namespace {

constexpr std::int64_t kTogether = 1'000'000;
constexpr std::int64_t kLongest = 500'000'000;

}  // namespace

AckLedger::AckLedger(std::size_t lanes, std::size_t most_waiting) : most_waiting_(most_waiting), waiting_of_(lanes) {}

std::uint64_t AckLedger::add(std::uint64_t number, std::size_t lane) {
  while (first_ + entries_.size() < number) entries_.push_back({.lane = 0, .state = State::told});
  entries_.push_back({.lane = static_cast<std::uint32_t>(lane), .state = State::held});
  return offset_ + number;
}

const AckLedger::Entry* AckLedger::find(std::uint64_t tag) const {
  const std::uint64_t at = tag - offset_ - first_;  // of what was there before: more than there are
  return at < entries_.size() ? &entries_[at] : nullptr;
}

bool AckLedger::holds(std::uint64_t tag) const {
  const Entry* entry = find(tag);
  return entry != nullptr && entry->state == State::held;
}

bool AckLedger::finish(std::uint64_t tag) {
  if (!holds(tag)) return false;
  Entry& entry = entries_[tag - offset_ - first_];
  entry.state = State::finished;
  ++waiting_;
  is_fresh_ = true;
  if (++waiting_of_[entry.lane] >= most_waiting_) is_full_ = true;
  return true;
}

std::int64_t AckLedger::due() const {
  if (is_full_) return 0;
  if (waiting_ == 0) return kNever;
  const std::int64_t by_age = stands_since_ == 0 ? kNever : stands_since_ + kLongest;
  return is_fresh_ ? std::min(taken_at_ + kTogether, by_age) : by_age;
}

AckLedger::Due AckLedger::take(std::int64_t now) {
  Due due;
  if (now < this->due()) return due;
  take_first(due);
  const bool is_late = stands_since_ != 0 && now - stands_since_ >= kLongest;
  if (is_full_ || is_late || now == kNever) take_others(due);
  if (waiting_ == 0) stands_since_ = 0;
  if (waiting_ > 0 && stands_since_ == 0) stands_since_ = now;
  is_full_ = false;
  is_fresh_ = false;
  taken_at_ = now;
  return due;
}

void AckLedger::take_first(Due& due) {
  while (!entries_.empty() && entries_.front().state != State::held) {
    const Entry& entry = entries_.front();
    if (entry.state == State::finished) {
      // Not the number of what was told before: the server knows it no more.
      due.all_up_to = first_;
      --waiting_;
      --waiting_of_[entry.lane];
    }
    entries_.pop_front();
    ++first_;
  }
}

void AckLedger::take_others(Due& due) {
  std::uint64_t number = first_;
  for (auto entry = entries_.begin(); waiting_ > 0; ++entry, ++number) {
    if (entry->state != State::finished) continue;
    entry->state = State::told;
    due.alone.push_back(number);
    --waiting_;
    --waiting_of_[entry->lane];
  }
}

void AckLedger::clear() {
  offset_ += first_ + entries_.size() - 1;
  entries_.clear();
  first_ = 1;
  waiting_ = 0;
  waiting_of_.assign(waiting_of_.size(), 0);
  is_full_ = false;
  is_fresh_ = false;
  stands_since_ = 0;
}

}  // namespace sluice::queue::rabbit
