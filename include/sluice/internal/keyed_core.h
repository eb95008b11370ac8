// The one table behind all Keyed limiters: keys as bytes, one limit. Not for use outside of this library.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

#include "sluice/clock.h"
#include "sluice/deadline.h"
#include "sluice/decision.h"
#include "sluice/internal/export.h"
#include "sluice/internal/waits.h"
#include "sluice/limit.h"
#include "sluice/reservation.h"
#include "sluice/verbs.h"
#include "sluice/wait_result.h"

namespace sluice::internal {

struct KeyedFigures {
  std::uint64_t keys = 0;     ///< held now
  std::uint64_t evicted = 0;  ///< forgotten for want of room, before they equalled fresh ones; never falls
  std::uint64_t expired = 0;  ///< dropped because they equalled fresh ones; never falls
  std::uint64_t bytes = 0;    ///< of memory held, in all
  std::uint64_t work = 0;     ///< slots looked at or moved to make room and to clean, since the beginning
};

class SLUICE_API KeyedCore {
 public:
  // Throws std::invalid_argument, naming each field and its range, and std::bad_alloc.
  KeyedCore(const Limit& limit, std::uint64_t max_keys);
  ~KeyedCore();
  KeyedCore(const KeyedCore&) = delete;
  KeyedCore& operator=(const KeyedCore&) = delete;

  Decision try_acquire(std::string_view key, std::uint64_t cost, Time now);
  // The same at the machine's time, which is read while the key's state is fetched.
  Decision try_acquire(std::string_view key, std::uint64_t cost);
  // As many decisions as keys. Costs: one for each key, or none for 1 each.
  void try_acquire_many(std::span<const std::string_view> keys, std::span<const std::uint64_t> costs,
                        std::span<Decision> decisions, Time now);
  [[nodiscard]] Decision peek(std::string_view key, std::uint64_t cost, Time now) const;
  Granted acquire_up_to(std::string_view key, std::uint64_t most, Time now);
  Decision refund(std::string_view key, std::uint64_t cost, Time now, std::optional<Time> charged);
  Decision settle(std::string_view key, std::uint64_t reserved, std::uint64_t actual, Time now,
                  std::optional<Time> charged);
  Decision penalize(std::string_view key, std::uint64_t cost, Time now);
  Decision reset(std::string_view key, Time now);
  // Throws std::invalid_argument, and changes nothing, when they are out of range. Precondition: the same algorithm.
  void set_limit(const Limit& limit, Time now);

  // A key as the table knows it: what a lease keeps of its key.
  struct KeyId {
    std::uint64_t place = 0;
    std::array<std::uint32_t, 3> bytes{};
  };
  // Token and leaky buckets only. `clock` is the one that all calls without `now` go by; the machine's when null.
  Reservation reserve(std::string_view key, std::uint64_t cost, std::chrono::nanoseconds max_wait, Time now,
                      const Clock* clock);
  WaitResult wait(std::string_view key, std::uint64_t cost, const Deadline& deadline, std::stop_token stop,
                  const Clock* clock);
  // The key's line, for as long as it is needed.
  std::shared_ptr<Waits> waits(std::string_view key, const Clock* clock);

  struct Leased {
    Decision decision;
    std::uint64_t id = 0;
    KeyId key;
  };
  // Concurrency only.
  Leased acquire_lease(std::string_view key, std::uint64_t cost, Time now);
  bool release(std::string_view key, std::uint64_t id, Time now) noexcept;
  bool release(const KeyId& key, std::uint64_t id, Time now) noexcept;

  [[nodiscard]] KeyedFigures figures() const noexcept;
  // The machine's time, of the clocks that the limit may go by; another is 0.
  [[nodiscard]] Time machine_now() const noexcept;

 private:
  struct SLUICE_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::internal
