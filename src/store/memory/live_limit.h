// The numbers of limits in use, compiled once each and shared by all that need them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "algorithm/compiled_limit.h"
#include "sluice/limit.h"
#include "store/charge.h"

namespace sluice::store::memory {

/// One (limit id, numbers) of the process. There is one object for equal ones, so comparing addresses tells whether a
/// state was made by the same numbers. Lives while anybody shares it: a limit of the policy, or a key in a store.
/// Immutable; thread-safe.
class LiveLimit final : public Derived {
 public:
  /// The one for `limit`, from its slot or else (first use of this object) from the table of all. Null when the numbers
  /// cannot be compiled: the policy loader refuses such. Valid while `limit` is. Cost: one load; the first time a lock,
  /// a look-up and perhaps an allocation.
  [[nodiscard]] static const LiveLimit* of(const CountedLimit& limit) noexcept {
    const Derived* derived = limit.derived.get();
    return derived != nullptr ? static_cast<const LiveLimit*>(derived) : find(limit);
  }

  LiveLimit(algorithm::CompiledLimit compiled_limit, std::uint32_t limit_id, Limit limit_numbers)
      : compiled(std::move(compiled_limit)),
        narrow(compiled.narrow_bucket()),
        id(limit_id),
        numbers(std::move(limit_numbers)) {}
  ~LiveLimit() = default;

  void share() const noexcept { shares_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept override;

  const algorithm::CompiledLimit compiled;
  const algorithm::NarrowBucket narrow;  ///< for what most limits are; decides nothing for others
  const std::uint32_t id;
  const Limit numbers;

 private:
  static const LiveLimit* find(const CountedLimit& limit) noexcept;
  mutable std::atomic<std::uint64_t> shares_{1};
};

/// How many there are in the process. Thread-safe.
[[nodiscard]] std::size_t live_limit_count();

}  // namespace sluice::store::memory
