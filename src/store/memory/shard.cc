#include "store/memory/shard.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <new>

namespace sluice::store::memory {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint32_t kRecordsPerPage = kPage / sizeof(Record);

/// A number of records, rounded up to whole pages.
std::uint32_t whole_pages(std::uint32_t records) {
  return (records + kRecordsPerPage - 1) / kRecordsPerPage * kRecordsPerPage;
}

}  // namespace

Shard::~Shard() {
  for (std::uint32_t i = 0; i < size(); ++i) {
    records_[i].limit->release();
    records_[i].key.free();
  }
  delete[] index_;
}

void Shard::init(Record* records, std::uint32_t capacity, std::uint32_t seed) noexcept {
  assert(capacity >= 1 && capacity <= kMaxRecords);
  records_ = records;
  capacity_ = capacity;
  random_ = seed | 1U;
}

void Shard::insert(std::uint32_t hash, const LiveLimit& limit, std::string_view key,
                   const algorithm::CompiledLimit::State& state, std::int64_t life_left, Time now) noexcept {
  if (size() == capacity_) evict_one(now);
  if ((size() + 1) * 4 > slots() * 3 && !resize_index(std::max(kSmallestIndex, slots() * 2))) return;
  const std::uint32_t number = size();
  touch(number + 1);
  auto* record = new (&records_[number]) Record;
  if (!record->key.set(key)) return;
  record->state = state;
  record->limit = &limit;
  record->hash = hash;
  limit.share();
  place((hash & kTag) | (number + 1));
  bump(size_, 1);
  bump(work_, 1);
  bump(bytes_, record->key.heap_bytes());
  if (life_left != algorithm::kNever) soonest_ = std::min(soonest_, now.steady + life_left);
}

void Shard::convert(std::uint32_t record, const LiveLimit& limit, std::int64_t instant) noexcept {
  Record& converted = records_[record];
  limit.compiled.convert(converted.state, converted.limit->compiled, instant);
  limit.share();
  converted.limit->release();
  converted.limit = &limit;
  soonest_ = INT64_MIN;  // it may go sooner than its old numbers said
}

std::uint32_t Shard::slot_of(std::uint32_t record) const noexcept {
  const std::uint32_t hash = records_[record].hash;
  const std::uint32_t entry = (hash & kTag) | (record + 1);
  std::uint32_t slot = hash >> shift_;
  while (index_[slot] != entry) slot = (slot + 1) & mask();
  return slot;
}

void Shard::place(std::uint32_t entry) noexcept {
  std::uint32_t slot = entry >> shift_;
  while (index_[slot] != 0) slot = (slot + 1) & mask();
  index_[slot] = entry;
}

bool Shard::resize_index(std::uint32_t new_slots) noexcept {
  assert(std::has_single_bit(new_slots) && new_slots > size());
  auto* fresh = new (std::nothrow) std::uint32_t[new_slots]();
  if (fresh == nullptr) return false;
  const std::uint32_t old_slots = slots();
  std::uint32_t* old = index_;
  index_ = fresh;
  shift_ = 32U - static_cast<std::uint32_t>(std::countr_zero(new_slots));
  for (std::uint32_t i = 0; i < old_slots; ++i) {
    if (old[i] != 0) place(old[i]);
  }
  delete[] old;
  bump(work_, old_slots);
  bump(bytes_, (std::size_t{new_slots} - old_slots) * sizeof(std::uint32_t));
  return true;
}

void Shard::erase(std::uint32_t record) noexcept {
  // Close the gap in the index: what would not be found behind a hole moves into it.
  std::uint32_t hole = slot_of(record);
  for (std::uint32_t slot = (hole + 1) & mask(); index_[slot] != 0; slot = (slot + 1) & mask()) {
    const std::uint32_t home = index_[slot] >> shift_;
    if (((slot - home) & mask()) < ((slot - hole) & mask())) continue;
    index_[hole] = index_[slot];
    hole = slot;
  }
  index_[hole] = 0;

  Record& gone = records_[record];
  bump(bytes_, 0 - gone.key.heap_bytes());
  gone.key.free();
  gone.limit->release();
  const std::uint32_t last = size() - 1;
  if (record != last) {
    index_[slot_of(last)] = (records_[last].hash & kTag) | (record + 1);
    gone = records_[last];
  }
  bump(size_, -1);
}

void Shard::evict_one(Time now) noexcept {
  const std::uint32_t candidates = size() <= kExact ? size() : kSample;
  std::uint32_t victim = 0;
  std::int64_t least = algorithm::kNever;
  for (std::uint32_t i = 0; i < candidates; ++i) {
    const std::uint32_t one = size() <= kExact ? i : draw();
    const std::int64_t left = records_[one].life_left(now);
    if (i != 0 && left >= least) continue;
    victim = one;
    least = left;
    if (left <= 0) break;
  }
  bump(work_, candidates);
  bump(least <= 0 ? expired_ : evicted_, 1);
  erase(victim);
}

Shard::Swept Shard::sweep(Time now, std::uint32_t budget) noexcept {
  Swept swept;
  if (hand_ == 0) {
    if (size() == 0 || now.steady < std::max(soonest_, rest_until_)) return swept;
    hand_ = size();
    soonest_ = algorithm::kNever;
    pass_seen_ = 0;
    pass_due_ = 0;
  }
  hand_ = std::min(hand_, size());
  while (hand_ > 0 && swept.steps < budget) {
    --hand_;
    ++pass_seen_;
    ++swept.steps;
    const std::int64_t left = records_[hand_].life_left(now);
    if (left <= 0) {
      erase(hand_);  // the last record, seen already, takes its place
      bump(expired_, 1);
      ++pass_due_;
      swept.steps += 4;
    } else if (left != algorithm::kNever) {
      soonest_ = std::min(soonest_, now.steady + left);
      if (left <= kPass) ++pass_due_;
    }
  }
  bump(work_, swept.steps);
  swept.done = hand_ == 0;
  if (swept.done) {
    if (pass_due_ * 16 < pass_seen_) rest_until_ = now.steady + kRest;
    give_back();
  }
  return swept;
}

void Shard::touch(std::uint32_t records) noexcept {
  if (records <= touched_) return;
  const std::uint32_t pages = whole_pages(records);
  bump(bytes_, std::size_t{pages - touched_} * sizeof(Record));
  touched_ = pages;
}

void Shard::give_back() noexcept {
  const std::uint32_t kept = whole_pages(size());
  if (touched_ > kept + kept / 8) {
    // The range is whole pages of this shard alone: the store lays shards out so.
    ::madvise(records_ + kept, std::size_t{touched_ - kept} * sizeof(Record), MADV_DONTNEED);
    bump(bytes_, 0 - std::size_t{touched_ - kept} * sizeof(Record));
    touched_ = kept;
  }
  if (size() == 0) {
    bump(bytes_, 0 - slots() * sizeof(std::uint32_t));
    delete[] index_;
    index_ = nullptr;
  } else if (slots() > kSmallestIndex && size() * 6 < slots()) {
    static_cast<void>(resize_index(std::max(kSmallestIndex, std::bit_ceil(size() * 2))));
  }
}

std::uint32_t Shard::draw() noexcept {
  random_ ^= random_ << 13U;  // xorshift32 (Marsaglia)
  random_ ^= random_ >> 17U;
  random_ ^= random_ << 5U;
  return static_cast<std::uint32_t>(std::uint64_t{random_} * size() >> 32U);
}

}  // namespace sluice::store::memory
