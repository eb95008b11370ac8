// What answers when the store that holds the state fails: the policy's word.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "metrics/metrics.h"
#include "store/memory/memory_store.h"
#include "store/readiness.h"
#include "store/relay_pool.h"
#include "store/store.h"

namespace sluice::store {

/// Asks a primary store; a check that it fails is answered by CountedLimit::on_store_failure of its charges:
///   local – by an in-process store with the limit's own numbers (Source::fallback_local);
///   allow – allowed, without figures (Source::fallback_allow: limit and remaining are 0);
///   deny  – denied, without figures (Source::fallback_deny).
/// In a request with charges of several kinds, a charge that denies counts as one that does not fit: when the request
/// is denied by it, nothing local is charged. A denial of the primary is an answer, never a failure. Checks that come
/// out of here never carry a failure.
///
/// One per io thread, as its primary; not thread-safe. No allocation after warm-up.
class FallbackStore final : public Store {
 public:
  /// `local` may be shared by threads and must outlive this; so must `metrics` and `readiness`, which the stores of all
  /// io threads share.
  FallbackStore(std::unique_ptr<Store> primary, MemoryStore& local, Readiness& readiness, metrics::Shard& metrics);
  /// Checks that are pending are never completed.
  ~FallbackStore() override;

  [[nodiscard]] Progress check(Check& check, Time now) override;
  /// By the primary alone: nothing that is done to the local counters would be done to the shared ones. So a failure is
  /// told, and what was charged locally while the primary failed stays so until it is refilled or over. But what a
  /// lease or a reservation took while the primary failed is given back where it was taken (Verb::is_stand_in): to the
  /// local counters, whatever the primary does now.
  [[nodiscard]] Progress apply(Check& check, Time now) override;
  /// Cost: proportional to the checks pending.
  void cancel(Check& check) override;
  /// False until the primary could first answer. Its failure after that is no reason to send traffic elsewhere: the
  /// other daemons have lost the same server, and `on_store_failure` answers.
  [[nodiscard]] bool ready() const override;
  void tend(Time now) override { primary_->tend(now); }

 private:
  class Relay;
  class LocalCheck;

  void relayed(Relay& relay);
  void settle(Check& check, Failure failure, Time now);
  void rescue(Check& check, Time now);

  std::unique_ptr<Store> primary_;
  MemoryStore& local_;
  Readiness& readiness_;
  metrics::Shard& metrics_;
  RelayPool<Relay> relays_;
  std::vector<Charge> local_charges_;
  std::vector<Decision> local_decisions_;
  std::vector<std::uint64_t> local_leases_;
};

}  // namespace sluice::store
