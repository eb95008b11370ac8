#include "store/denial_table.h"

#include <xxhash.h>

#include <algorithm>
#include <random>

namespace sluice::store {

namespace {

std::uint64_t mix(std::uint64_t sum, std::uint64_t number) {
  sum ^= number;
  sum *= 0x9e3779b97f4a7c15U;
  return sum ^ sum >> 32U;
}

// All that decides what a limit answers, so that a denial by other numbers is none.
std::uint64_t digest(const Limit& limit) {
  std::uint64_t sum = mix(0, static_cast<std::uint64_t>(limit.algorithm));
  sum = mix(sum, limit.rate);
  sum = mix(sum, static_cast<std::uint64_t>(limit.period.count()));
  sum = mix(sum, limit.burst);
  sum = mix(sum, limit.queue);
  sum = mix(sum, limit.slots);
  sum = mix(sum, static_cast<std::uint64_t>(limit.align));
  if (limit.align != Align::calendar) return sum;
  sum = mix(sum, static_cast<std::uint64_t>(limit.calendar.unit));
  sum = mix(sum, static_cast<std::uint64_t>(limit.calendar.anchor_day));
  return mix(sum, XXH3_64bits(limit.calendar.timezone.data(), limit.calendar.timezone.size()));
}

}  // namespace

DenialKey denial_key(const CountedLimit& limit, std::string_view key) {
  static const std::uint64_t kSeed = (std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}();
  const XXH128_hash_t hash = XXH3_128bits_withSeed(key.data(), key.size(), mix(kSeed, limit.id));
  return {.low = hash.low64, .high = hash.high64};
}

void DenialEpochs::forget(const CountedLimit& limit, std::string_view key) {
  shares_[denial_key(limit, key).high % shares_.size()].fetch_add(1, std::memory_order_acq_rel);
  latest_.fetch_add(1, std::memory_order_acq_rel);
}

void DenialEpochs::forget_all() {
  all_.fetch_add(1, std::memory_order_acq_rel);
  latest_.fetch_add(1, std::memory_order_acq_rel);
}

const DenialTable::Denial* DenialTable::find(const DenialKey& key, const Limit& numbers, std::int64_t now) const {
  if (is_empty(now)) return nullptr;
  const std::size_t first = first_of(key);
  for (std::size_t i = first; i < first + kWays; ++i) {
    const Entry& entry = entries_[i];
    if (entry.key != key) continue;
    const bool holds = now < entry.denial.until && entry.epoch == epochs_.of(key) && entry.numbers == digest(numbers);
    return holds ? &entry.denial : nullptr;
  }
  return nullptr;
}

void DenialTable::put(const DenialKey& key, const Limit& numbers, const Denial& denial) {
  if (entries_.empty()) entries_.resize(kEntries);
  const std::size_t first = first_of(key);
  std::size_t place = first;
  for (std::size_t i = first; i < first + kWays; ++i) {
    if (entries_[i].key == key) {
      place = i;
      break;
    }
    if (entries_[i].denial.until < entries_[place].denial.until) place = i;
  }
  entries_[place] = {.key = key, .numbers = digest(numbers), .epoch = epochs_.of(key), .denial = denial};
  latest_until_ = std::max(latest_until_, denial.until);
}

void DenialTable::erase(const DenialKey& key) {
  if (entries_.empty()) return;
  const std::size_t first = first_of(key);
  for (std::size_t i = first; i < first + kWays; ++i) {
    if (entries_[i].key == key) entries_[i] = {};
  }
}

}  // namespace sluice::store
