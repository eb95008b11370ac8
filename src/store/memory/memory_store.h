// Counters in this process: the store of a single daemon, and of every daemon when the shared one fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "algorithm/cell.h"
#include "store/memory/live_limit.h"
#include "store/memory/policy_record.h"
#include "store/memory/shard.h"
#include "store/memory/table.h"
#include "store/store.h"

namespace sluice::store {

/// A memory::Table of the keys of all limits, shared by all threads.
///
/// - One call is one atomic step over all its charges: it locks their shards, in ascending order.
/// - A key takes 60 … 75 bytes, however long it is: above 19 bytes 128 bits of hash stand for it (see memory::KeyHash).
///   States that grow own memory besides, which is counted: a sliding log 16 bytes an entry, a sliding window of
///   several slots 8 bytes each.
/// - Keys that equal fresh ones are dropped as calls come: see memory::Table.
/// - Never more than max_keys. A full shard drops a key for each new one: see memory::Shard::insert; `evicted` counts
///   those that were not yet as fresh. As keys spread by hash, a shard may be full when 19/20 of max_keys are there;
///   below 8 192 max_keys there is one shard and the bound is exact.
/// - Leases are told where there is room for them (Check::leases); no id comes twice.
/// - A denied or a looking charge (cost 0) makes no key.
/// - The first call that brings new numbers for a key turns its state into theirs (set_limit).
/// - A limit that cannot be compiled, which the policy loader refuses, and a charge for which there is no memory are
///   answered as on_store_failure says, `local` as `allow`.
class MemoryStore final : public Store {
 public:
  static constexpr std::uint64_t kDefaultMaxKeys = 10'000'000;
  static constexpr std::uint64_t kMostKeys = memory::Table<memory::PolicyRecord>::kMostKeys;

  /// `max_keys` 1 … kMostKeys. Takes 75 bytes of address space a key; memory comes as keys do. Throws std::bad_alloc
  /// when there is no address space for it.
  explicit MemoryStore(std::uint64_t max_keys = kDefaultMaxKeys);
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  /// Any thread. Always answers at once. Cost: two or three cache misses a charge and some 40 ns; no allocation but for
  /// states that grow.
  [[nodiscard]] Progress check(Check& check, Time now) override;
  /// Any thread. Has all verbs, each of which is one atomic step; `unsupported` also of a limit that cannot be
  /// compiled, `out_of_memory` when the state wants memory and there is none: then nothing has changed. Cost: as
  /// check().
  [[nodiscard]] Progress apply(Check& check, Time now) override;
  void cancel(Check& /*check*/) override {}
  /// The verdict on a charge of which nothing is taken, as for one that fits in a request that others deny: the figures
  /// are those of the state as it is. Any thread; cost: as check().
  [[nodiscard]] Decision judge(const Charge& charge, Time now);

  /// Memory comes in small pages, so that no check() waits long for it. Joins 2 MB of them that are all in use into a
  /// huge one, with which a decision takes a quarter less time: some ms, for a thread that decides nothing. False:
  /// there are no more such. The system does the same by itself, but only in minutes. Any thread.
  bool join_pages() noexcept { return table_.join_pages(); }

  using Figures = memory::TableFigures;
  /// Any thread.
  [[nodiscard]] Figures figures() const { return table_.figures(); }

 private:
  struct Step;
  class Locks;

  using Shard = memory::Shard<memory::PolicyRecord>;

  void check_one(const Charge& charge, Decision& decision, bool& admitted, Time now);
  void locate(const Check& check, Time now, std::vector<Step>& steps, std::vector<std::uint32_t>& shards);
  void find_all(std::vector<Step>& steps);
  void check_many(Check& check, Time now);
  void peek_many(Check& check, Time now);
  void apply_one(Check& check, const memory::LiveLimit& limit, Time now);
  [[nodiscard]] std::uint64_t take_lease(const memory::LiveLimit& limit, algorithm::Cell& cell, std::int64_t instant,
                                         std::uint64_t cost);

  memory::PolicyRecord::Book book_;
  memory::Table<memory::PolicyRecord> table_;
  /// The last lease's id. Begins anywhere, so that a lease of before a restart is not taken for one of after it.
  std::atomic<std::uint64_t> leases_;
};

}  // namespace sluice::store
