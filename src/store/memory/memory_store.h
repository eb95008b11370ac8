// Counters in this process: the store of a single daemon, and of every daemon when the shared one fails.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "store/memory/key_hash.h"
#include "store/memory/shard.h"
#include "store/memory/slot_arena.h"
#include "store/memory/spin_lock.h"
#include "store/store.h"

namespace sluice::store {

/// Sharded, bounded, self-cleaning, shared by all threads.
///
/// - One call is one atomic step over all its charges: it locks their shards, in ascending order.
/// - A key takes 75 … 90 bytes, however long it is: above 27 bytes 128 bits of hash stand for it (see memory::KeyHash).
/// - Each call may look through a shard and drop the keys in it that equal fresh ones: about half a second after a key
///   does (at most two and a half, when few do), its memory is free again, if there are calls. No thread, no timer. One
///   call looks at no more than kMostLooked slots and one shard.
/// - Never more than max_keys. A full shard drops a key for each new one: see memory::Shard::insert; `evicted` counts
///   those that were not yet as fresh. As keys spread by hash, a shard may be full when 19/20 of max_keys are there;
///   below 8 192 max_keys there is one shard and the bound is exact.
/// - A denied or a looking charge (cost 0) makes no key.
/// - The first call that brings new numbers for a key turns its state into theirs (set_limit).
/// - A limit that cannot be compiled, which the policy loader refuses, is answered as its on_store_failure says,
/// `local`
///   as `allow`.
class MemoryStore final : public Store {
 public:
  static constexpr std::uint64_t kDefaultMaxKeys = 10'000'000;
  static constexpr std::uint64_t kMostKeys = 1'000'000'000;
  static constexpr std::uint32_t kMostLooked = 1'024;

  /// `max_keys` 1 … kMostKeys. Takes 86 bytes of address space a key; memory comes as keys do. Throws std::bad_alloc
  /// when there is no address space for it.
  explicit MemoryStore(std::uint64_t max_keys = kDefaultMaxKeys);
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  /// Any thread. Always answers at once. Cost: one cache miss a charge and some 40 ns; no allocation but for new keys
  /// of more than 27 bytes.
  [[nodiscard]] Progress check(Check& check, Time now) override;
  void cancel(Check& /*check*/) override {}
  /// The verdict on a charge of which nothing is taken, as for one that fits in a request that others deny: the figures
  /// are those of the state as it is. Any thread; cost: as check().
  [[nodiscard]] Decision judge(const Charge& charge, Time now);

  /// Sums over all shards; any thread. See memory::Shard for `work`.
  struct Figures {
    std::uint64_t keys = 0;
    std::uint64_t evicted = 0;  ///< dropped for want of room, not yet as fresh; never falls
    std::uint64_t expired = 0;  ///< dropped because they equalled fresh ones; never falls
    std::uint64_t bytes = 0;    ///< memory held, in all
    std::uint64_t work = 0;
  };
  [[nodiscard]] Figures figures() const;

 private:
  struct Step;
  class Locks;

  void check_one(const Charge& charge, Decision& decision, bool& admitted, Time now);
  void check_many(Check& check, Time now);
  void clean(Time now) {
    if (now.steady >= clean_due_.load(std::memory_order_relaxed)) clean_some(now);
  }
  void clean_some(Time now);
  [[nodiscard]] std::uint32_t shard_of(std::uint64_t hash) const {
    return static_cast<std::uint32_t>(hash >> 32U & shard_mask_);
  }

  memory::KeyHash hash_;
  std::uint32_t shard_mask_ = 0;
  std::unique_ptr<memory::SlotArena> arena_;
  std::unique_ptr<memory::Shard[]> shards_;  // in the arena, so they go first

  alignas(64) std::atomic<std::int64_t> clean_due_{INT64_MIN};  // steady time
  memory::SpinLock cleaning_;                                   // guards the rest
  bool pass_begun_ = false;
  std::int64_t pass_start_ = 0;
  std::uint32_t cursor_ = 0;
};

}  // namespace sluice::store
