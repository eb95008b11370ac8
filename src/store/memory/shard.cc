#include "store/memory/shard.h"

#include <algorithm>
#include <cassert>

namespace sluice::store::memory {
namespace {

/// A number of slots, rounded up to whole rows.
template <typename Record>
std::uint32_t whole_rows(std::uint32_t slots) {
  return SlotArena::rows_for<Record>(slots) * Slots<Record>::kRow;
}

}  // namespace

template <typename Record>
Shard<Record>::~Shard() {
  clear();
}

template <typename Record>
void Shard<Record>::init(SlotArena& arena, const Book& book, std::uint32_t number, std::uint32_t capacity,
                         std::uint32_t seed) noexcept {
  assert(capacity >= 1);
  arena_ = &arena;
  book_ = &book;
  number_ = number;
  slots_ = arena.slots_of<Record>(number);
  capacity_ = capacity;
  random_ = seed | 1U;
}

template <typename Record>
void Shard<Record>::insert(std::uint32_t hash, const Numbers& numbers, const Key& key, const algorithm::Cell& cell,
                           std::int64_t life_left, Time now) noexcept {
  if ((size() == capacity_ || is_full_with(size() + 1)) && may_drop(now)) drop_fresh(now);
  if (size() == capacity_) evict_one(now);
  if (is_full_with(size() + 1)) spread(slots_for(size() + 1));
  const Record record(hash, numbers, key, cell);
  while (!try_insert(record)) {  // so many hashes fall together at the end
    if (slots() < slots_for(size() + 1)) {
      spread(slots_for(size() + 1));
    } else {
      evict_one(now);
    }
  }
  bump(size_, 1);
  account(0, Record::compiled_of(numbers).memory(cell));
  note_life(life_left, now);
}

/// find_quickly() of a key that does not lie in the first two groups.
template <typename Record>
Record* Shard<Record>::find_behind(std::uint32_t hash, std::uint64_t head, std::uint64_t tail) const noexcept
  requires(Record::kGroup == 2)
{
  for (std::uint32_t slot = home_of(hash, slots()) + 2 * Record::kGroup;; ++slot) {
    Record& record = slots_[slot];
    if (record.is_empty() || record.hash > hash) return nullptr;
    if (record.head() == head && record.tail() == tail) return &record;
  }
}

/// False when the run at its place reaches the end of the slots.
template <typename Record>
bool Shard<Record>::try_insert(const Record& record) noexcept {
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

/// How long until a record equals one never seen, so that it may go; 0 or less: it may go now; algorithm::kNever: at no
/// time.
template <typename Record>
std::int64_t Shard<Record>::life_left(const Record& record, Time now) const noexcept {
  const algorithm::CompiledLimit& compiled = record.compiled(*book_);
  const std::int64_t end = compiled.expires_at(record.cell);
  if (end == algorithm::kNever || end == algorithm::kNeverSeen) return end;
  std::int64_t left = 0;  // the difference of two instants may be too large, when the clock has jumped
  if (__builtin_sub_overflow(end, compiled.instant(now), &left)) return end > 0 ? algorithm::kNever - 1 : INT64_MIN;
  return left;
}

template <typename Record>
void Shard<Record>::convert(std::uint32_t slot, const Numbers& numbers, std::int64_t instant) {
  Record& converted = slots_[slot];
  const algorithm::CompiledLimit& old = converted.compiled(*book_);
  const algorithm::CompiledLimit& compiled = Record::compiled_of(numbers);
  const std::size_t before = old.memory(converted.cell);
  compiled.convert(converted.cell, old, instant);
  converted.now_made_by(numbers);
  account(before, compiled.memory(converted.cell));
  soonest_ = INT64_MIN;  // it may go sooner than its old numbers said
}

template <typename Record>
algorithm::Cell Shard<Record>::copy_up_to_date(std::uint32_t slot, const Numbers& numbers, std::int64_t instant) const {
  const Record& seen = slots_[slot];
  const algorithm::CompiledLimit& old = seen.compiled(*book_);
  algorithm::Cell copy = old.copy_of(seen.cell);
  try {
    Record::compiled_of(numbers).convert(copy, old, instant);
  } catch (...) {
    old.clear(copy);
    throw;
  }
  return copy;
}

/// Gives up what a record holds besides its slot.
template <typename Record>
void Shard<Record>::drop(Record& record) noexcept {
  account(record.compiled(*book_).memory(record.cell), 0);
  record.forget(*book_);
  bump(size_, -1);
}

template <typename Record>
void Shard<Record>::erase(std::uint32_t slot) noexcept {
  drop(slots_[slot]);
  // Those behind it come nearer to their homes, up to the first that is at home.
  std::uint32_t next = slot + 1;
  for (; !slots_[next].is_empty() && home_of(slots_[next].hash, slots()) < next; ++next)
    slots_[next - 1] = slots_[next];
  slots_[next - 1].make_empty();
  bump(work_, next - slot);
}

template <typename Record>
void Shard<Record>::clear() noexcept {
  for (std::uint32_t slot = 0; slot < used_end(); ++slot) {
    if (slots_[slot].is_empty()) continue;
    drop(slots_[slot]);
    slots_[slot].make_empty();
  }
  soonest_ = algorithm::kNever;
  rest_until_ = INT64_MIN;
}

template <typename Record>
void Shard<Record>::evict_one(Time now) noexcept {
  std::uint32_t victim = kNone;
  std::int64_t least = algorithm::kNever;
  const auto consider = [&](std::uint32_t slot) {
    const std::int64_t left = life_left(slots_[slot], now);
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
template <typename Record>
void Shard<Record>::drop_fresh(Time now) noexcept {
  soonest_ = algorithm::kNever;
  std::uint32_t due = 0;
  const std::uint32_t seen = used_end();
  const std::uint32_t before = size();
  for (std::uint32_t slot = seen; slot-- > 0;) {
    if (slots_[slot].is_empty()) continue;
    const std::int64_t left = life_left(slots_[slot], now);
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
template <typename Record>
void Shard<Record>::spread(std::uint32_t new_slots) noexcept {
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
    for (; next < place; ++next) slots_[next].make_empty();
    if (place != waiting) slots_[place] = slots_[waiting];
    next = place + 1;
  }
  for (; next < past; ++next) slots_[next].make_empty();
}

template <typename Record>
std::uint32_t Shard<Record>::clean(Time now) noexcept {
  std::uint32_t seen = 1;
  const bool drops = size() > 0 && may_drop(now);
  if (drops) {
    seen = used_end();
    drop_fresh(now);
  }
  // An insertion may have done the dropping.
  const bool shrinks = slots() > slots_for(kExact) && is_loose();
  if (shrinks) {
    seen = std::max(seen, used_end());
    spread(slots_for(size()));
  }
  if (drops || shrinks) give_back();
  return seen;
}

/// Moves the records of [from, past) to the right.
template <typename Record>
void Shard<Record>::shift_right(std::uint32_t from, std::uint32_t past, std::uint32_t by) noexcept {
  for (std::uint32_t slot = past; slot-- > from;) slots_[slot + by] = slots_[slot];
}

/// Makes sure that the rows of so many slots are in use.
template <typename Record>
void Shard<Record>::take(std::uint32_t slots) noexcept {
  if (slots <= taken_) return;
  const std::uint32_t rows = whole_rows<Record>(slots);
  arena_->take(number_, taken_ / Slots<Record>::kRow, rows / Slots<Record>::kRow);
  taken_ = rows;
}

template <typename Record>
void Shard<Record>::give_back() noexcept {
  std::uint32_t past = used_end();
  while (past > 0 && slots_[past - 1].is_empty()) --past;
  const std::uint32_t kept = whole_rows<Record>(past);
  if (taken_ <= kept + kept / 8) return;
  arena_->give_up(number_, kept / Slots<Record>::kRow, taken_ / Slots<Record>::kRow);
  taken_ = kept;
}

template <typename Record>
std::uint32_t Shard<Record>::draw(std::uint32_t below) noexcept {
  random_ ^= random_ << 13U;  // xorshift32 (Marsaglia)
  random_ ^= random_ >> 17U;
  random_ ^= random_ << 5U;
  return static_cast<std::uint32_t>(std::uint64_t{random_} * below >> 32U);
}

template class Shard<PolicyRecord>;
template class Shard<KeyedRecord>;

}  // namespace sluice::store::memory
