#include "store/redis/batch.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace sluice::store::redis {

namespace {
// What the protocol and a limit's argument add to a key, and a charge's share of the requests, at most or nearly so.
constexpr std::size_t kBytesOfKey = 80;
constexpr std::size_t kBytesOfCharge = 13;
}  // namespace

// Where the key is, or where it would be.
std::size_t Batch::slot_of(std::uint64_t hash, std::string_view key_name) const {
  const std::size_t mask = table_.size() - 1;
  for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    if (table_[slot] == kFree) return slot;
    const Key& key = keys_[table_[slot] - 1U];
    if (key.hash == hash && name(key) == key_name) return slot;
  }
}

void Batch::grow_table() {
  table_.assign(std::max<std::size_t>(2 * kMostKeys, 2 * table_.size()), kFree);
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    table_[slot_of(keys_[i].hash, name(keys_[i]))] = static_cast<std::uint16_t>(i + 1);
  }
}

// The last to come goes first, so no search passes over a gap.
void Batch::forget_keys(std::size_t from) {
  while (keys_.size() > from) {
    table_[slot_of(keys_.back().hash, name(keys_.back()))] = kFree;
    names_.resize(keys_.back().name_begin);
    weight_ -= keys_.back().limit->weight();
    keys_.pop_back();
  }
}

bool Batch::add(Check& check, Limits limits, const KeyNaming& naming, Time caller, std::int64_t deadline) {
  const bool is_first = requests_.empty();
  const std::size_t keys_before = keys_.size();
  const std::size_t charges_before = charges_.size();
  const bool shares_call = check.verb == nullptr && !is_verb();
  bool fits = is_first || (shares_call && charges_before + check.charges.size() <= kMostCharges);
  for (std::size_t i = 0; fits && i < check.charges.size(); ++i) {
    const store::Charge& charge = check.charges[i];
    const std::size_t name_begin = names_.size();
    append_redis_key(names_, naming, charge.limit->identity, charge.key);
    const std::string_view key_name = std::string_view(names_).substr(name_begin);
    const std::uint64_t hash = XXH3_64bits(key_name.data(), key_name.size());
    if (2 * keys_.size() >= table_.size()) grow_table();
    const std::size_t slot = slot_of(hash, key_name);
    std::size_t index = table_[slot];
    if (index != kFree) {
      names_.resize(name_begin);
      // During a reload both old and new numbers come; a call has one limit a key.
      const auto& present = keys_[--index].limit;
      fits = present == limits[i] || present->numbers() == limits[i]->numbers();
    } else {
      index = keys_.size();
      keys_.push_back(
          {.name_begin = name_begin, .name_size = key_name.size(), .hash = hash, .limit = limits[i], .caller = caller});
      table_[slot] = static_cast<std::uint16_t>(keys_.size());
      weight_ += limits[i]->weight();
    }
    charges_.push_back(
        {.key = static_cast<std::uint32_t>(index), .enforcement = charge.enforcement, .cost = charge.cost});
  }
  const std::size_t bytes = names_.size() + weight_ + kBytesOfKey * keys_.size() + kBytesOfCharge * charges_.size();
  if (!is_first && (keys_.size() > kMostKeys || bytes > kMostBytes)) fits = false;
  if (!fits) {
    charges_.resize(charges_before);
    forget_keys(keys_before);
    return false;
  }
  requests_.push_back({.check = &check,
                       .first_charge = static_cast<std::uint32_t>(charges_before),
                       .charge_count = static_cast<std::uint32_t>(check.charges.size()),
                       .verb = check.verb != nullptr ? std::optional(*check.verb) : std::nullopt,
                       .deadline = deadline});
  return true;
}

bool Batch::withdraw(const Check& check) {
  const auto found = std::ranges::find(requests_, &check, &Request::check);
  if (found == requests_.end()) return false;
  found->check = nullptr;
  return true;
}

bool Batch::is_awaited() const {
  return std::ranges::any_of(requests_, [](const Request& request) { return request.check != nullptr; });
}

std::size_t Batch::prepare() {
  for (Key& key : keys_) key.place = 0;
  sent_requests_ = 0;
  for (Request& request : requests_) {
    request.is_sent = request.check != nullptr;
    if (!request.is_sent) continue;
    ++sent_requests_;
    for (const Charge& charge : charges(request)) keys_[charge.key].place = 1;
  }
  places_.clear();
  sent_limits_.clear();
  for (std::uint32_t i = 0; i < keys_.size(); ++i) {
    Key& key = keys_[i];
    if (key.place == 0) continue;
    places_.push_back(i);
    const auto found = std::ranges::find(sent_limits_, key.limit.get());
    key.place = static_cast<std::uint32_t>(found - sent_limits_.begin());
    if (found == sent_limits_.end()) sent_limits_.push_back(key.limit.get());
  }
  // By limit, in the order in which those came.
  std::ranges::sort(places_, {}, [this](std::uint32_t i) { return std::pair(keys_[i].place, i); });
  const RedisLimit* before = nullptr;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Key& key = keys_[places_[i]];
    key.place = static_cast<std::uint32_t>(i + 1);
    key.begins_limit = key.limit.get() != before;
    before = key.limit.get();
  }
  return sent_requests_;
}

void Batch::clear() {
  names_.clear();
  weight_ = 0;
  keys_.clear();
  charges_.clear();
  requests_.clear();
  std::ranges::fill(table_, kFree);
  places_.clear();
  sent_limits_.clear();
  sent_requests_ = 0;
}

}  // namespace sluice::store::redis
