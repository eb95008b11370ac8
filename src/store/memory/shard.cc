#include "store/memory/shard.h"

#include <algorithm>
#include <cassert>

namespace sluice::store::memory {
namespace {

/// A number of slots, rounded up to whole rows.
std::uint32_t whole_rows(std::uint32_t slots) { return (slots + Slots::kRow - 1) / Slots::kRow * Slots::kRow; }

}  // namespace

Shard::~Shard() {
  for (std::uint32_t slot = 0; slot < used_end(); ++slot) {
    if (!slots_[slot].is_empty()) slots_[slot].limit->release();
  }
}

void Shard::init(SlotArena& arena, std::uint32_t number, std::uint32_t capacity, std::uint32_t seed) noexcept {
  assert(capacity >= 1);
  arena_ = &arena;
  number_ = number;
  slots_ = arena.slots_of(number);
  capacity_ = capacity;
  random_ = seed | 1U;
}

void Shard::insert(std::uint32_t hash, const LiveLimit& limit, const SlotKey& key,
                   const algorithm::CompiledLimit::State& state, std::int64_t life_left, Time now) noexcept {
  if ((size() == capacity_ || is_full_with(size() + 1)) && may_drop(now)) drop_fresh(now);
  if (size() == capacity_) evict_one(now);
  if (is_full_with(size() + 1)) spread(slots_for(size() + 1));
  Record record;
  record.state = state;
  record.limit = &limit;
  record.hash = hash;
  record.key = key;
  while (!try_insert(record)) {  // so many hashes fall together at the end
    if (slots() < slots_for(size() + 1)) {
      spread(slots_for(size() + 1));
    } else {
      evict_one(now);
    }
  }
  limit.share();
  bump(size_, 1);
  if (life_left != algorithm::kNever) soonest_ = std::min(soonest_, now.steady + life_left);
}

/// False when the run at its place reaches the end of the slots.
bool Shard::try_insert(const Record& record) noexcept {
  std::uint32_t place = home_of(record.hash, slots());
  while (!slots_[place].is_empty() && slots_[place].hash <= record.hash) ++place;
  std::uint32_t hole = place;
  while (!slots_[hole].is_empty()) ++hole;
  if (hole == end()) return false;
  take(hole + 1);
  shift_right(place, hole, 1);
  slots_[place] = record;
  bump(work_, hole - place + 1);
  return true;
}

void Shard::convert(std::uint32_t slot, const LiveLimit& limit, std::int64_t instant) noexcept {
  Record& converted = slots_[slot];
  limit.compiled.convert(converted.state, converted.limit->compiled, instant);
  limit.share();
  converted.limit->release();
  converted.limit = &limit;
  soonest_ = INT64_MIN;  // it may go sooner than its old numbers said
}

/// Gives up what a record holds besides its slot.
void Shard::drop(Record& record) noexcept {
  record.limit->release();
  bump(size_, -1);
}

void Shard::erase(std::uint32_t slot) noexcept {
  drop(slots_[slot]);
  // Those behind it come nearer to their homes, up to the first that is at home.
  std::uint32_t next = slot + 1;
  for (; !slots_[next].is_empty() && home_of(slots_[next].hash, slots()) < next; ++next)
    slots_[next - 1] = slots_[next];
  slots_[next - 1].limit = nullptr;
  bump(work_, next - slot);
}

void Shard::evict_one(Time now) noexcept {
  std::uint32_t victim = kNone;
  std::int64_t least = algorithm::kNever;
  const auto consider = [&](std::uint32_t slot) {
    const std::int64_t left = slots_[slot].life_left(now);
    if (victim != kNone && left >= least) return;
    victim = slot;
    least = left;
  };
  std::uint32_t looked = 0;
  if (size() <= kExact) {
    for (; looked < used_end(); ++looked) {
      if (!slots_[looked].is_empty()) consider(looked);
    }
  } else {
    for (std::uint32_t found = 0; found < kSample && (victim == kNone || least > 0); ++looked) {
      const std::uint32_t slot = draw(used_end());
      if (slots_[slot].is_empty()) continue;
      consider(slot);
      ++found;
    }
  }
  bump(work_, looked);
  bump(least <= 0 ? expired_ : evicted_, 1);
  erase(victim);
}

/// Drops every record that equals a fresh one.
void Shard::drop_fresh(Time now) noexcept {
  soonest_ = algorithm::kNever;
  std::uint32_t due = 0;
  const std::uint32_t seen = used_end();
  const std::uint32_t before = size();
  for (std::uint32_t slot = seen; slot-- > 0;) {
    if (slots_[slot].is_empty()) continue;
    const std::int64_t left = slots_[slot].life_left(now);
    if (left <= 0) {
      erase(slot);  // what comes into its place has been seen
      bump(expired_, 1);
      ++due;
    } else if (left != algorithm::kNever) {
      soonest_ = std::min(soonest_, now.steady + left);
      if (left <= kSoon) ++due;
    }
  }
  bump(work_, seen);
  if (std::uint64_t{due} * 16 < before) rest_until_ = now.steady + kRest;
}

/// Lays the records out over another number of slots, in place.
void Shard::spread(std::uint32_t new_slots) noexcept {
  // First all to the right, without gaps. How far does not matter much, as long as nobody's place is to the right of
  // where it waits.
  constexpr std::uint32_t slack = 8;
  const std::uint32_t old_end = used_end();
  std::uint32_t past = std::max(old_end, new_slots + slack);
  take(past);
  std::uint32_t waiting = past;
  for (std::uint32_t slot = old_end; slot-- > 0;) {
    if (slots_[slot].is_empty()) continue;
    --waiting;
    if (waiting != slot) slots_[waiting] = slots_[slot];
  }
  bump(work_, past);

  slot_count_.store(new_slots, std::memory_order_relaxed);
  std::uint32_t next = 0;  // slots before it are done
  for (; waiting < past; ++waiting) {
    const std::uint32_t place = std::max(next, home_of(slots_[waiting].hash, new_slots));
    const std::uint32_t shift = place > waiting ? place - waiting : 0;
    if (place >= end() || past + shift > most_slots(capacity_)) {
      // As likely as that hashes fall together by the hundred: the tail does not hold them all.
      drop(slots_[waiting]);
      bump(evicted_, 1);
      continue;
    }
    if (shift != 0) {  // the last ones come to lie in the tail: make room before them
      take(past + shift);
      shift_right(waiting, past, shift);
      waiting += shift;
      past += shift;
    }
    for (; next < place; ++next) slots_[next].limit = nullptr;
    if (place != waiting) slots_[place] = slots_[waiting];
    next = place + 1;
  }
  for (; next < past; ++next) slots_[next].limit = nullptr;
}

std::uint32_t Shard::clean(Time now) noexcept {
  if (size() == 0 || !may_drop(now)) return 1;
  const std::uint32_t seen = used_end();
  drop_fresh(now);
  if (slots() > slots_for(kExact) && size() * 2 < slots()) spread(slots_for(size()));
  give_back();
  return seen;
}

/// Moves the records of [from, past) to the right.
void Shard::shift_right(std::uint32_t from, std::uint32_t past, std::uint32_t by) noexcept {
  for (std::uint32_t slot = past; slot-- > from;) slots_[slot + by] = slots_[slot];
}

/// Makes sure that the rows of so many slots are in use.
void Shard::take(std::uint32_t slots) noexcept {
  if (slots <= taken_) return;
  const std::uint32_t rows = whole_rows(slots);
  arena_->take(number_, taken_ / Slots::kRow, rows / Slots::kRow);
  taken_ = rows;
}

void Shard::give_back() noexcept {
  std::uint32_t past = used_end();
  while (past > 0 && slots_[past - 1].is_empty()) --past;
  const std::uint32_t kept = whole_rows(past);
  if (taken_ <= kept + kept / 8) return;
  arena_->give_up(number_, kept / Slots::kRow, taken_ / Slots::kRow);
  taken_ = kept;
}

std::uint32_t Shard::draw(std::uint32_t below) noexcept {
  random_ ^= random_ << 13U;  // xorshift32 (Marsaglia)
  random_ ^= random_ >> 17U;
  random_ ^= random_ << 5U;
  return static_cast<std::uint32_t>(std::uint64_t{random_} * below >> 32U);
}

}  // namespace sluice::store::memory
