#include "sluice/internal/keyed_core.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "algorithm/calendar.h"
#include "algorithm/cell.h"
#include "algorithm/compiled_limit.h"
#include "algorithm/limit_check.h"
#include "algorithm/require_valid.h"
#include "keyed/keyed_lines.h"
#include "sluice/internal/counter_clock.h"
#include "sluice/internal/waits.h"
#include "sluice/reservation.h"
#include "store/memory/key_hash_inline.h"
#include "store/memory/keyed_record.h"
#include "store/memory/seen_cell.h"
#include "store/memory/shard.h"
#include "store/memory/table.h"
#include "waiting/queue.h"

namespace sluice::internal {

namespace {

using algorithm::Cell;
using algorithm::CompiledLimit;
using algorithm::Outcome;
using store::memory::Generation;
using store::memory::KeyedRecord;
using store::memory::KeyHash;
using store::memory::ShortKey;
using Shard = store::memory::Shard<KeyedRecord>;
using Table = store::memory::Table<KeyedRecord>;

CompiledLimit compiled(const Limit& limit) {
  algorithm::require_valid(limit);
  auto made = CompiledLimit::compile(limit, algorithm::Tick::nanosecond, &algorithm::open_calendar);
  if (!made) throw std::invalid_argument("sluice: " + made.error().message);
  return *std::move(made);
}

// max_keys, if it and the limit are within their ranges; else throws, naming all that is not.
std::uint64_t checked(const Limit& limit, std::uint64_t max_keys) {
  std::vector<algorithm::LimitProblem> problems = algorithm::validate(limit);
  if (max_keys < 1 || max_keys > Table::kMostKeys) {
    problems.push_back(
        {"max_keys", "must be 1 … " + std::to_string(Table::kMostKeys) + ", is " + std::to_string(max_keys)});
  }
  if (!problems.empty()) throw std::invalid_argument("sluice: " + algorithm::joined(problems));
  return max_keys;
}

constexpr std::int64_t kLatestNow = Table::kLatestNow;

std::int64_t instant_of(const CompiledLimit& limit, Time now) {
  return std::clamp(limit.instant(now), -kLatestNow, kLatestNow);
}

std::optional<std::int64_t> instant_of(const CompiledLimit& limit, std::optional<Time> time) {
  return time ? std::optional(instant_of(limit, *time)) : std::nullopt;
}

std::int64_t utc_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

// Each call reads which generation of the numbers is current with its shard locked. So whoever has published a
// generation and then locked a shard knows that nobody goes by an older one in it.
//
// In the table there is one clock, that of the present numbers.
struct KeyedCore::State final : keyed::Store {
  State(const Limit& of, std::uint64_t max_keys)
      : algorithm(of.algorithm),
        is_bucket(algorithm == Algorithm::token_bucket || algorithm == Algorithm::leaky_bucket),
        table(checked(of, max_keys), book),
        has_aes_bucket(is_bucket && table.hash().way() == KeyHash::Way::aes),
        lines(*this,
              algorithm == Algorithm::leaky_bucket ? waiting::Queue::Order::slots : waiting::Queue::Order::tokens) {
    add(of, compiled(of), 0);
  }

  struct Numbered : Generation {
    Limit numbers;
    std::uint64_t since = 0;  // the how-manyth set_limit made it current last
  };

  void add(const Limit& numbers, CompiledLimit&& limit, std::uint32_t index) {
    generations[index] = std::make_unique<Numbered>(Numbered{{std::move(limit), index}, numbers, 0});
    book[index] = generations[index].get();
    publish(index);
  }
  void publish(std::uint32_t index) {
    generations[index]->since = ++changes;
    current.store(generations[index].get(), std::memory_order_release);
  }

  template <typename Function>
  void for_each_record(Function function) {
    for (std::uint32_t i = 0; i < table.shards(); ++i) {
      Shard& shard = table.shard(i);
      const std::scoped_lock lock(shard);
      shard.for_each([&](std::uint32_t slot) { function(shard, slot); });
    }
  }
  std::uint32_t free_index(Time now);

  // Where a key should be: that is on its way from memory when this has been made.
  struct Target {
    KeyHash::QuickSpot spot;
    Shard* shard = nullptr;
    Shard::Home home;
  };
  template <KeyHash::Way kWay>
  [[nodiscard, gnu::always_inline]] Target target_of(std::string_view key) const noexcept {
    const KeyHash::QuickSpot spot = table.hash().quick_spot<kWay>(key);
    Shard& shard = table.shard(table.shard_number_of(spot.shard));
    const Target target{spot, &shard, shard.home(spot.hash())};
    // The lock's fence would keep these loads from starting before it.
    __builtin_prefetch(target.home.first, 1);
    __builtin_prefetch(target.home.second, 1);
    return target;
  }
  // A charge of any kind.
  [[gnu::noinline]] Decision charge(const KeyHash::Spot& spot, std::uint64_t cost, Time now);
  [[gnu::noinline]] Decision charge(std::string_view key, std::uint64_t cost, Time now) {
    return charge(table.hash().spot(key), cost, now);
  }
  // The same as charge() where nothing is in the way: a bucket that is there, of the present numbers, which are narrow,
  // and a lock that nobody has. Else has done nothing and answers otherwise(). It is inlined, calls nothing, and needs
  // no memory but the record's: short as it is, the processor fetches what the next call needs while this one waits.
  template <typename Otherwise>
  [[gnu::always_inline]] inline Decision charge_quickly(const Target& target, std::uint64_t cost, std::int64_t now,
                                                        Otherwise otherwise);
  // Of a key no longer than KeyHash::kQuick and a bucket. Where it can't be quick it finds the key's spot anew, so that
  // nothing need be kept for that.
  template <KeyHash::Way kWay>
  [[gnu::always_inline]] inline Decision acquire(std::string_view key, std::uint64_t cost, Time now);
  template <KeyHash::Way kWay>
  [[gnu::always_inline]] inline Decision acquire(std::string_view key, std::uint64_t cost);
  template <KeyHash::Way kWay>
  [[gnu::noinline]] void acquire_many(std::span<const std::string_view> keys, std::span<const std::uint64_t> costs,
                                      std::span<Decision> decisions, Time now);
  // What is left of each.
  [[gnu::noinline]] Decision acquire_otherwise(std::string_view key, std::uint64_t cost, Time now);
  [[gnu::noinline]] Decision acquire_otherwise(std::string_view key, std::uint64_t cost, const KeyedCore& core);

  void change(const KeyHash::Spot& spot, std::int64_t now, const Change& change) override;
  // A verb that is not a charge: as on_numbers(numbers, state, at) says beneath the key's line, where it has one, or
  // else as on_cell(limit, cell, at).
  template <typename OnNumbers, typename OnCell>
  Decision verb(std::string_view key, Time now, OnNumbers on_numbers, OnCell on_cell);
  // Nothing where the key has no line.
  template <typename Verb>
  std::optional<Decision> beneath_line(const KeyHash::Spot& spot, waiting::Kind kind, Time now, Verb verb);

  const Algorithm algorithm;
  const bool is_bucket;
  KeyedRecord::Book book{};
  std::atomic<const Generation*> current{nullptr};
  std::atomic<std::uint64_t> leases{0};  // ids given out
  std::mutex setting;                    // guards the rest, but the table
  std::uint64_t changes = 0;
  std::array<std::unique_ptr<Numbered>, KeyedRecord::kGenerations> generations;
  Table table;  // its records refer to generations, so it goes before them
  const bool has_aes_bucket;
  keyed::KeyedLines lines;
};

namespace {

// One call about one key: finds its shard, and its record under the lock.
class Access {
 public:
  Access(const Table& table, const KeyHash::Spot& spot)
      : hash_(static_cast<std::uint32_t>(spot.place)),
        key_(spot.key),
        shard_(table.shard(table.shard_number(spot.place))) {
    shard_.prefetch(hash_);  // the lock's fence would keep the load from starting before it
    shard_.lock();
  }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
  ~Access() { shard_.unlock(); }

  // Once, before all else: this or look_for(). Throws std::bad_alloc and changes nothing when a state of older numbers
  // needs memory.
  void find(const std::atomic<const Generation*>& current, Time now) {
    look_for(current, now);
    if (slot_ != Shard::kNone) shard_.bring_up_to_date(slot_, *numbers_, now_);
  }
  // For what changes nothing, a state of older numbers neither: it looks at seen().
  void look_for(const std::atomic<const Generation*>& current, Time now) {
    numbers_ = current.load(std::memory_order_acquire);
    now_ = instant_of(numbers_->compiled, now);
    slot_ = shard_.find(hash_, *numbers_, key_);
  }
  [[nodiscard]] store::memory::SeenCell seen() const { return {shard_, slot_, *numbers_, now_}; }
  [[nodiscard]] const CompiledLimit& limit() const { return numbers_->compiled; }
  [[nodiscard]] std::int64_t now() const { return now_; }
  [[nodiscard]] Time table_now() const { return {now_, now_}; }
  [[nodiscard]] bool found() const { return slot_ != Shard::kNone; }
  [[nodiscard]] Cell cell() const { return found() ? shard_[slot_].cell : Cell(); }

  // Calls function(cell), which answers an Outcome, and keeps a key that is no longer as never seen.
  template <typename Function>
  Outcome charge(Function&& function) {
    if (found()) return shard_.change(slot_, *numbers_, function);
    Cell fresh;
    const Outcome outcome = function(fresh);
    if (!fresh.is_fresh()) shard_.insert(hash_, *numbers_, key_, fresh, outcome.view.reset_after, table_now());
    return outcome;
  }
  // The same for changes after which a key may go sooner than before.
  template <typename Function>
  Decision change(Function&& function) {
    const Outcome outcome = charge([&](Cell& changed) {
      function(changed);
      return Outcome{limit().judge(changed, now_, 0), limit().view(changed, now_)};
    });
    if (found()) shard_.note_life(outcome.view.reset_after, table_now());
    return algorithm::decision_of(outcome);
  }
  void erase() { shard_.erase(slot_); }

 private:
  std::uint32_t hash_;
  ShortKey key_;
  Shard& shard_;
  const Generation* numbers_ = nullptr;
  std::int64_t now_ = 0;
  std::uint32_t slot_ = Shard::kNone;
};

// A line at a key: what its numbers are, and what the change needs of them.
template <typename A>
waiting::Book book_of(const A& numbers) {
  if constexpr (std::is_same_v<A, algorithm::LeakyBucket>) {
    return {.tokens = numbers.slots(), .slots = &numbers};
  } else {
    return {.tokens = numbers};
  }
}

KeyHash::Spot spot_of(const KeyedCore::KeyId& key) { return {key.place, std::bit_cast<ShortKey>(key.bytes)}; }

}  // namespace

void KeyedCore::State::change(const KeyHash::Spot& spot, std::int64_t now, const Change& change) {
  Access access(table, spot);
  access.find(current, {now, now});
  access.change([&](Cell& cell) {
    access.limit().on_bucket(cell, [&](const auto& numbers, waiting::State& own) {
      change(book_of(numbers), own, algorithm::TokenBucket::clamp(own, access.now()));
    });
  });
}

template <typename Verb>
std::optional<Decision> KeyedCore::State::beneath_line(const KeyHash::Spot& spot, waiting::Kind kind, Time now,
                                                       Verb verb) {
  const std::shared_ptr<keyed::KeyedLine> line = lines.find(spot);
  if (line == nullptr) return std::nullopt;
  const std::int64_t instant = std::clamp(now.steady, -kLatestNow, kLatestNow);
  waiting::Queue::Verb beneath(line->queue(), kind, instant);
  Decision decision;
  line->waiting::Account::change(instant, [&](const waiting::Book& numbers, waiting::State& state, std::int64_t at) {
    waiting::State base = beneath.beneath(numbers.tokens, state, at);
    numbers.on([&](const auto& own) { verb(own, base, at); });
    state = beneath.above(numbers.tokens, base, at);
    decision = numbers.on(
        [&](const auto& own) { return algorithm::decision_of(own.judge(state, at, 0), own.view(state, at)); });
  });
  return decision;
}

template <typename OnNumbers, typename OnCell>
Decision KeyedCore::State::verb(std::string_view key, Time now, OnNumbers on_numbers, OnCell on_cell) {
  const KeyHash::Spot spot = table.hash().spot(key);
  if (const auto by_line = beneath_line(spot, waiting::Kind::charge, now, on_numbers)) return *by_line;
  Access access(table, spot);
  access.find(current, now);
  return access.change([&](Cell& cell) { on_cell(access.limit(), cell, access.now()); });
}

KeyedCore::KeyedCore(const Limit& limit, std::uint64_t max_keys) : state_(std::make_unique<State>(limit, max_keys)) {}
KeyedCore::~KeyedCore() = default;

Decision KeyedCore::State::charge(const KeyHash::Spot& spot, std::uint64_t cost, Time now) {
  Outcome outcome;
  Time table_now;
  {
    Access access(table, spot);
    access.find(current, now);
    table_now = access.table_now();
    outcome = access.charge([&](Cell& cell) { return access.limit().decide(cell, access.now(), cost); });
  }
  table.clean(table_now);
  return algorithm::decision_of(outcome);
}

template <typename Otherwise>
inline Decision KeyedCore::State::charge_quickly(const Target& target, std::uint64_t cost, std::int64_t now,
                                                 Otherwise otherwise) {
  if (table.is_clean_due(now)) [[unlikely]]
    return otherwise();
  Shard& shard = *target.shard;
  if (shard.try_lock()) [[likely]] {
    const std::lock_guard lock(shard, std::adopt_lock);
    const Generation& numbers = *current.load(std::memory_order_acquire);
    KeyedRecord* const record = shard.find_quickly(target.home, target.spot.head | numbers.in_head, target.spot.tail);
    if (record != nullptr && numbers.bucket.decides(record->cell)) [[likely]]
      return numbers.bucket.decide(record->cell, now, cost);
  }
  return otherwise();
}

template <KeyHash::Way kWay>
inline Decision KeyedCore::State::acquire(std::string_view key, std::uint64_t cost, Time now) {
  return charge_quickly(target_of<kWay>(key), cost, now.steady, [&] { return charge(key, cost, now); });
}

template <KeyHash::Way kWay>
inline Decision KeyedCore::State::acquire(std::string_view key, std::uint64_t cost) {
  const Target target = target_of<kWay>(key);  // the clock is read while the record is on its way
  const std::int64_t now = steady_now();
  return charge_quickly(target, cost, now, [&] { return charge(key, cost, {.steady = now}); });
}

[[gnu::flatten]] Decision KeyedCore::State::acquire_otherwise(std::string_view key, std::uint64_t cost, Time now) {
  if (!is_bucket || key.size() > KeyHash::kQuick) return charge(key, cost, now);
  return acquire<KeyHash::Way::xxh3>(key, cost, now);
}

[[gnu::flatten]] Decision KeyedCore::State::acquire_otherwise(std::string_view key, std::uint64_t cost,
                                                              const KeyedCore& core) {
  if (!is_bucket || key.size() > KeyHash::kQuick) return charge(key, cost, core.machine_now());
  return acquire<KeyHash::Way::xxh3>(key, cost);
}

[[gnu::flatten]] Decision KeyedCore::try_acquire(std::string_view key, std::uint64_t cost, Time now) {
  State& state = *state_;
  if (!state.has_aes_bucket || key.size() > KeyHash::kQuick) [[unlikely]]
    return state.acquire_otherwise(key, cost, now);
  return state.acquire<KeyHash::Way::aes>(key, cost, now);
}

[[gnu::flatten]] Decision KeyedCore::try_acquire(std::string_view key, std::uint64_t cost) {
  State& state = *state_;
  if (!state.has_aes_bucket || key.size() > KeyHash::kQuick) [[unlikely]]
    return state.acquire_otherwise(key, cost, *this);
  return state.acquire<KeyHash::Way::aes>(key, cost);
}

template <KeyHash::Way kWay>
[[gnu::flatten]] void KeyedCore::State::acquire_many(std::span<const std::string_view> keys,
                                                     std::span<const std::uint64_t> costs,
                                                     std::span<Decision> decisions, Time now) {
  constexpr std::size_t kBatch = 32;
  std::array<Target, kBatch> targets;
  for (std::size_t begin = 0; begin < keys.size(); begin += kBatch) {
    const std::size_t count = std::min(kBatch, keys.size() - begin);
    for (std::size_t i = 0; i < count; ++i) __builtin_prefetch(keys[begin + i].data());
    for (std::size_t i = 0; i < count; ++i) {
      const std::string_view key = keys[begin + i];
      if (key.size() > KeyHash::kQuick) [[unlikely]] {
        targets[i].shard = nullptr;
        continue;
      }
      targets[i] = target_of<kWay>(key);
      targets[i].shard->prefetch_lock();
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t cost = costs.empty() ? 1 : costs[begin + i];
      const auto otherwise = [&] { return charge(keys[begin + i], cost, now); };
      decisions[begin + i] = !is_bucket || targets[i].shard == nullptr
                                 ? otherwise()
                                 : charge_quickly(targets[i], cost, now.steady, otherwise);
    }
  }
}

void KeyedCore::try_acquire_many(std::span<const std::string_view> keys, std::span<const std::uint64_t> costs,
                                 std::span<Decision> decisions, Time now) {
  assert(decisions.size() == keys.size() && (costs.empty() || costs.size() == keys.size()));
  if (state_->table.hash().way() == KeyHash::Way::aes) {
    state_->acquire_many<KeyHash::Way::aes>(keys, costs, decisions, now);
  } else {
    state_->acquire_many<KeyHash::Way::xxh3>(keys, costs, decisions, now);
  }
}

Decision KeyedCore::peek(std::string_view key, std::uint64_t cost, Time now) const {
  Access access(state_->table, state_->table.hash().spot(key));
  access.look_for(state_->current, now);
  return algorithm::decision_of(access.limit().peek(*access.seen(), access.now(), cost));
}

Granted KeyedCore::acquire_up_to(std::string_view key, std::uint64_t most, Time now) {
  Access access(state_->table, state_->table.hash().spot(key));
  access.find(state_->current, now);
  const std::uint64_t cost = std::min(most, access.limit().view(access.cell(), access.now()).remaining);
  return {cost, algorithm::decision_of(
                    access.charge([&](Cell& cell) { return access.limit().decide(cell, access.now(), cost); }))};
}

Decision KeyedCore::refund(std::string_view key, std::uint64_t cost, Time now, std::optional<Time> charged) {
  return state_->verb(
      key, now, [&](const auto& numbers, waiting::State& base, std::int64_t at) { numbers.refund(base, at, cost); },
      [&](const CompiledLimit& limit, Cell& cell, std::int64_t at) {
        limit.refund(cell, at, cost, instant_of(limit, charged));
      });
}

Decision KeyedCore::settle(std::string_view key, std::uint64_t reserved, std::uint64_t actual, Time now,
                           std::optional<Time> charged) {
  return state_->verb(
      key, now,
      [&](const auto& numbers, waiting::State& base, std::int64_t at) { numbers.settle(base, at, reserved, actual); },
      [&](const CompiledLimit& limit, Cell& cell, std::int64_t at) {
        limit.settle(cell, at, reserved, actual, instant_of(limit, charged));
      });
}

Decision KeyedCore::penalize(std::string_view key, std::uint64_t cost, Time now) {
  return state_->verb(
      key, now, [&](const auto& numbers, waiting::State& base, std::int64_t at) { numbers.penalize(base, at, cost); },
      [&](const CompiledLimit& limit, Cell& cell, std::int64_t at) { limit.penalize(cell, at, cost); });
}

Decision KeyedCore::reset(std::string_view key, Time now) {
  const KeyHash::Spot spot = state_->table.hash().spot(key);
  const auto by_line =
      state_->beneath_line(spot, waiting::Kind::reset, now,
                           [](const auto& /*numbers*/, waiting::State& base, std::int64_t /*at*/) { base = {}; });
  if (by_line) return *by_line;
  Access access(state_->table, spot);
  access.find(state_->current, now);
  if (access.found()) access.erase();
  return algorithm::decision_of(access.limit().peek(Cell(), access.now(), 0));
}

Reservation KeyedCore::reserve(std::string_view key, std::uint64_t cost, std::chrono::nanoseconds max_wait, Time now,
                               const Clock* clock) {
  auto line = state_->lines.line(state_->table.hash().spot(key), clock);
  auto owner = std::make_unique<keyed::KeyedReserver>(state_->lines, line);
  const Reserved reserved =
      line->queue().reserve(cost, max_wait.count(), std::clamp(now.steady, -kLatestNow, kLatestNow));
  return {reserved, reserved.held != nullptr ? owner.release() : nullptr};
}

WaitResult KeyedCore::wait(std::string_view key, std::uint64_t cost, const Deadline& deadline, std::stop_token stop,
                           const Clock* clock) {
  if (state_->algorithm == Algorithm::token_bucket && !stop.stop_requested()) {
    // Without a line where there is nothing to wait for: whoever waits has the bucket in debt.
    const Time now = clock != nullptr ? clock->now() : machine_now();
    if (deadline.steady(now.steady) >= now.steady) {
      const Decision decision = try_acquire(key, cost, now);
      if (decision.allowed) return {.decision = decision, .ready_at = now.steady};
    }
  }
  return wait_in_line(*waits(key, clock), cost, deadline, std::move(stop));
}

std::shared_ptr<Waits> KeyedCore::waits(std::string_view key, const Clock* clock) {
  auto line = state_->lines.line(state_->table.hash().spot(key), clock);
  waiting::Queue* const queue = &line->queue();
  return {std::move(line), queue};
}

KeyedCore::Leased KeyedCore::acquire_lease(std::string_view key, std::uint64_t cost, Time now) {
  State& state = *state_;
  const KeyHash::Spot spot = state.table.hash().spot(key);
  Leased leased{.decision{}, .id = 0, .key = {spot.place, std::bit_cast<std::array<std::uint32_t, 3>>(spot.key)}};
  Time table_now;
  {
    Access access(state.table, spot);
    access.find(state.current, now);
    table_now = access.table_now();
    const CompiledLimit& limit = access.limit();
    leased.decision = algorithm::decision_of(access.charge([&](Cell& cell) {
      const algorithm::Verdict verdict = limit.judge(cell, access.now(), cost);
      if (verdict.fits && cost != 0) {
        // Ids grow as they are given out under the lock, so those of one key are in order.
        const std::uint64_t before = state.leases.fetch_add(1, std::memory_order_relaxed);
        leased.id = limit.take_lease(cell, access.now(), cost, before);
      }
      return Outcome{verdict, limit.view(cell, access.now())};
    }));
  }
  state.table.clean(table_now);
  return leased;
}

bool KeyedCore::release(std::string_view key, std::uint64_t id, Time now) noexcept {
  const KeyHash::Spot spot = state_->table.hash().spot(key);
  return release({spot.place, std::bit_cast<std::array<std::uint32_t, 3>>(spot.key)}, id, now);
}

bool KeyedCore::release(const KeyId& key, std::uint64_t id, Time now) noexcept {
  // Leases own their memory elsewhere whatever the numbers, so nothing here needs any.
  Access access(state_->table, spot_of(key));
  access.find(state_->current, now);
  if (!access.found()) return false;
  bool held = false;
  const Outcome outcome = access.charge([&](Cell& cell) {
    held = access.limit().release(cell, access.now(), id);
    return Outcome{{}, access.limit().view(cell, access.now())};
  });
  if (outcome.view.reset_after == 0) access.erase();
  return held;
}

void KeyedCore::set_limit(const Limit& limit, Time now) {
  CompiledLimit next = compiled(limit);
  State& state = *state_;
  assert(limit.algorithm == state.algorithm);
  const std::scoped_lock lock(state.setting);
  std::vector<std::shared_ptr<keyed::KeyedLine>> lines;
  waiting::Left left;
  std::unique_lock numbers_lock(state.lines.numbers());
  const algorithm::TokenBucket* const bucket = state.current.load(std::memory_order_relaxed)->compiled.bucket_numbers();
  const auto old_bucket = bucket != nullptr ? std::optional(*bucket) : std::nullopt;
  const bool other_clock = next.uses_utc() != state.current.load(std::memory_order_relaxed)->compiled.uses_utc();
  const auto same =
      std::ranges::find_if(state.generations, [&](const auto& one) { return one != nullptr && one->numbers == limit; });
  if (same != state.generations.end()) {
    state.publish((*same)->index);
  } else {
    state.add(limit, std::move(next), state.free_index(now));
  }
  if (old_bucket) {
    lines = state.lines.all();
    for (const auto& line : lines) {
      line->queue().renumber(*old_bucket, std::clamp(now.steady, -kLatestNow, kLatestNow), left);
    }
  }
  numbers_lock.unlock();
  left.finish();
  if (!other_clock) return;
  // All begin anew by the other clock, and those that nobody asks for would never be over by it.
  const Generation& numbers = *state.current.load(std::memory_order_relaxed);
  const std::int64_t at = instant_of(numbers.compiled, now);
  state.for_each_record([&](Shard& shard, std::uint32_t slot) { shard.bring_up_to_date(slot, numbers, at); });
}

// An index that no record has, and that nobody goes by.
std::uint32_t KeyedCore::State::free_index(Time now) {
  const Generation& present = *current.load(std::memory_order_relaxed);
  const auto older = [&](const auto& a, const auto& b) {
    if (a == nullptr || b == nullptr) return a == nullptr && b != nullptr;
    return a->since < b->since;
  };
  const auto oldest = std::ranges::min_element(generations, older);
  const auto index = static_cast<std::uint32_t>(oldest - generations.begin());
  if (*oldest == nullptr) return index;
  const std::int64_t at = instant_of(present.compiled, now);
  for_each_record([&](Shard& shard, std::uint32_t slot) {
    if (shard[slot].is_made_by(**oldest)) shard.bring_up_to_date(slot, present, at);
  });
  return index;
}

KeyedFigures KeyedCore::figures() const noexcept {
  const store::memory::TableFigures sum = state_->table.figures();
  return {.keys = sum.keys,
          .evicted = sum.evicted,
          .expired = sum.expired,
          .bytes = sum.bytes + sizeof(State),
          .work = sum.work};
}

Time KeyedCore::machine_now() const noexcept {
  const bool utc = state_->algorithm == Algorithm::sliding_window || state_->algorithm == Algorithm::fixed_window;
  const bool steady = state_->algorithm != Algorithm::sliding_window;
  return {.steady = steady ? steady_now() : 0, .utc = utc ? utc_now() : 0};
}

}  // namespace sluice::internal
