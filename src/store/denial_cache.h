// Remembers what a shared store has denied, so that callers who keep asking don't reach it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "metrics/metrics.h"
#include "store/denial_table.h"
#include "store/relay_pool.h"
#include "store/store.h"

namespace sluice::store {

/// Asks a primary store, but for requests whose charges have all been denied lately and would be denied again: between
/// a denial and its retry_after a counter can only be used further, so the same or a greater cost cannot fit, whoever
/// else asks. Tokens that are given back end this (DenialEpochs); those given back by other processes are heard of
/// after `longest` at the latest.
///
/// A verb that changes a counter makes all threads forget its denials: when its answer comes, and also when none does,
/// as it may have been done.
///
/// A request is answered here only when that is exact: every charge must be known to be denied, as the state of the
/// others could not be told. Not remembered: limits that count denied charges, leases (a release comes at any time),
/// and costs that can never fit. Sliding windows and logs answer for the very cost that was denied only, as the wait of
/// another one is not known. retry_after and reset_after count down; remaining is what a bucket has gained since, and
/// for others what it was.
///
/// One per io thread, as its primary; not thread-safe. No allocation after warm-up.
class DenialCache final : public Store {
 public:
  /// `longest` from 1 ns. `epochs` and `metrics` must outlive this.
  DenialCache(std::unique_ptr<Store> primary, std::chrono::nanoseconds longest, DenialEpochs& epochs,
              metrics::Shard& metrics);
  /// Checks that are pending are never completed.
  ~DenialCache() override;

  [[nodiscard]] Progress check(Check& check, Time now) override;
  /// By the primary; what was denied to the key is then forgotten.
  [[nodiscard]] Progress apply(Check& check, Time now) override;
  /// Cost: proportional to the checks pending.
  void cancel(Check& check) override;
  [[nodiscard]] bool ready() const override { return primary_->ready(); }

 private:
  class Relay;

  [[nodiscard]] bool answer(Check& check, std::int64_t now) const;
  void forget(const Check& check);
  void learn(const Check& check, std::int64_t asked_at, std::uint64_t epoch);
  void relayed(Relay& relay);
  void answer_from(Relay& relay);

  const std::unique_ptr<Store> primary_;
  const std::int64_t longest_;
  DenialEpochs& epochs_;
  metrics::Shard& metrics_;
  DenialTable table_;
  RelayPool<Relay> relays_;
};

}  // namespace sluice::store
