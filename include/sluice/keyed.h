// One limit for each of many keys, in this process: per user, per address, per tenant.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sluice/clock.h"
#include "sluice/concurrency.h"
#include "sluice/deadline.h"
#include "sluice/decision.h"
#include "sluice/fixed_window.h"
#include "sluice/internal/keyed_core.h"
#include "sluice/internal/keyed_limit.h"
#include "sluice/internal/waits.h"
#include "sluice/key_bytes.h"
#include "sluice/leaky_bucket.h"
#include "sluice/reservation.h"
#include "sluice/sliding_log.h"
#include "sluice/sliding_window.h"
#include "sluice/token_bucket.h"
#include "sluice/verbs.h"
#include "sluice/wait_result.h"

namespace sluice {

/// What a Keyed needs to know besides its numbers.
struct KeyedOptions {
  /// The most keys held at once: 1 … 10^9. Address space for as many is taken at once, memory as keys come.
  std::uint64_t max_keys = 1'000'000;
  /// What calls without `now` go by; the machine's when null. It must live as long as the limiter.
  const Clock* clock = nullptr;
};

/// What a Keyed holds and what it forgot.
using KeyedFigures = internal::KeyedFigures;

/// What all Keyed limiters have in common, whatever the algorithm. Base of these; not for use by itself.
template <typename Algorithm, typename Key>
class KeyedBase {
 public:
  /// The numbers that all keys share.
  using Numbers = typename Algorithm::Numbers;
  /// What a call takes for a key: std::string_view for strings, so that no call has to make one.
  using KeyArgument = typename internal::KeyArgument<Key>::Type;

  KeyedBase(const KeyedBase&) = delete;
  KeyedBase& operator=(const KeyedBase&) = delete;

  /// What try_acquire would answer; changes nothing.
  [[nodiscard]] Decision peek(KeyArgument key, std::uint64_t cost, Time now) const {
    return core_.peek(Bytes(key), cost, now);
  }
  /// The same, at the present time.
  [[nodiscard]] Decision peek(KeyArgument key, std::uint64_t cost = 1) const {
    return core_.peek(Bytes(key), cost, at());
  }

  /// New numbers for all keys, while running. Each key's state is converted by the first call about it but peek(), as
  /// Algorithm::set_limit says; a key that slept through fifteen of these, by the fifteenth. Throws
  /// std::invalid_argument, and changes nothing, when they are out of range. Cost: some µs; for another Align of fixed
  /// windows, and after every fifteenth of different numbers, a pass over all keys, which holds nobody else up for more
  /// than a shard of some thousand.
  void set_limit(const Numbers& numbers, Time now) { core_.set_limit(internal::limit_of(numbers), now); }
  /// The same, at the present time.
  void set_limit(const Numbers& numbers) { set_limit(numbers, at()); }

  /// The key is as never seen. Answers what peek(key, 0) then says.
  Decision reset(KeyArgument key, Time now) { return core_.reset(Bytes(key), now); }
  /// The same, at the present time.
  Decision reset(KeyArgument key) { return core_.reset(Bytes(key), at()); }

  /// Sums over all keys. Any thread; looks at one figure after the other while others change them.
  [[nodiscard]] KeyedFigures figures() const noexcept { return core_.figures(); }

 protected:
  /// As the constructor of Keyed.
  KeyedBase(const Numbers& numbers, const KeyedOptions& options)
      : core_(internal::limit_of(numbers), options.max_keys), clock_(options.clock) {}
  ~KeyedBase() = default;

  /// A key's bytes, for as long as the key is there.
  class Bytes {
   public:
    /// Of this key, which must live as long.
    explicit Bytes(KeyArgument key) : held_(KeyBytes<Key>::of(key)) {}
    /// The bytes.
    operator std::string_view() const noexcept {  // NOLINT(google-explicit-constructor): that is all it is for
      return internal::view_of(held_);
    }

   private:
    std::remove_cvref_t<decltype(KeyBytes<Key>::of(std::declval<KeyArgument>()))> held_;
  };

  /// The present time.
  [[nodiscard]] Time at() const { return clock_ != nullptr ? clock_->now() : core_.machine_now(); }

  internal::KeyedCore core_;  ///< the table
  const Clock* clock_;        ///< null: the machine's
};

/// An Algorithm (TokenBucket, LeakyBucket, FixedWindow, SlidingWindow, SlidingLog or Concurrency) for each key, with
/// the same numbers for all.
///
///     sluice::Keyed<sluice::TokenBucket, std::string> per_user{{.rate = 10, .burst = 30}};
///     if (!per_user.try_acquire(user).allowed) return too_many_requests();
///
/// The verbs are those of the Algorithm, with the key first. Keys are strings (any bytes, any length; asked for by
/// std::string_view), integers, enumerations, or what KeyBytes is specialised for.
///
/// **Memory.** Bounded by KeyedOptions::max_keys and cleaned by the calls themselves; no thread, no timer. A key takes
/// 50 … 60 bytes, however long it is: above 11 bytes a hash stands for it, under a secret of the process (two keys are
/// taken for one with a chance of about 2^-112). SlidingLog, Concurrency and SlidingWindow with several slots take
/// more as they grow (docs/keyed.md has figures). A key whose state equals one never seen is dropped half a second to
/// two and a half later, if there are calls, and its memory given back to the system. When max_keys are there, a new
/// key takes the place of one that is nearest to that among eight; figures().evicted counts those that were not yet
/// there, as each such may be let through once more. As keys spread by hash, that may begin at 19/20 of max_keys; below
/// 8 192 the bound is exact. A denial, a peek and a charge of cost 0 make no key.
///
/// **Time.** As the Algorithm goes by it. An older `now` is answered as the newest at which the key changed; a key that
/// was dropped or reset has forgotten that. Instants more than 146 years from the clock's zero count as that far.
///
/// **Threads.** Every call may be made from any thread. Keys lie in shards, each with a lock held for some tens of ns;
/// two calls on one key are one after the other. A call costs one or two cache misses; now and then one also grows or
/// cleans a shard of at most 8 192 keys, which takes some tens of µs and never more than a few hundred.
///
/// **Errors.** std::bad_alloc where a state must own memory and there is none (SlidingLog, Concurrency, SlidingWindow
/// with several slots, and very large numbers or debts of the others); then nothing was changed.
template <typename Algorithm, typename Key = std::string>
class Keyed : public KeyedBase<Algorithm, Key> {
  using Base = KeyedBase<Algorithm, Key>;
  using Bytes = typename Base::Bytes;
  using Base::at;
  using Base::clock_;
  using Base::core_;
  static constexpr bool kGivesBack = !std::is_same_v<Algorithm, LeakyBucket>;
  static constexpr bool kWaits = std::is_same_v<Algorithm, TokenBucket> || std::is_same_v<Algorithm, LeakyBucket>;
  static constexpr bool kHasWindows = std::is_same_v<Algorithm, FixedWindow> ||
                                      std::is_same_v<Algorithm, SlidingWindow> || std::is_same_v<Algorithm, SlidingLog>;
  // Views of keys, besides the keys; where these are views there is nothing besides.
  static constexpr bool kTakesViews = !std::is_same_v<Key, std::string_view> &&
                                      std::is_same_v<typename internal::KeyArgument<Key>::Type, std::string_view>;

 public:
  /// The numbers that all keys share.
  using Numbers = typename Base::Numbers;
  /// What a call takes for a key.
  using KeyArgument = typename Base::KeyArgument;

  /// Throws std::invalid_argument, naming each field that is out of range, and std::bad_alloc when there is no address
  /// space for max_keys.
  explicit Keyed(const Numbers& numbers, const KeyedOptions& options = {}) : Base(numbers, options) {}

  /// Takes `cost` tokens of the key's if there are as many; else takes nothing (but see FixedWindow's count_denied) and
  /// says when there will be. Cost 0 asks only.
  Decision try_acquire(KeyArgument key, std::uint64_t cost, Time now) {
    return core_.try_acquire(Bytes(key), cost, now);
  }
  /// The same, at the present time.
  Decision try_acquire(KeyArgument key, std::uint64_t cost = 1) {
    const Bytes bytes(key);
    return clock_ == nullptr ? core_.try_acquire(bytes, cost) : core_.try_acquire(bytes, cost, clock_->now());
  }

  /// try_acquire of each key in turn, all at one `now`, with the cache misses of all of them at once: several times as
  /// fast where the keys are many. `costs`: one for each key, or none at all for 1 each. Precondition: as many
  /// `decisions` as keys.
  ///
  /// `keys`: a vector, array or span of Key, or of std::string_view where a call takes one.
  void try_acquire_many(std::span<const Key> keys, std::span<Decision> decisions, Time now,
                        std::span<const std::uint64_t> costs = {}) {
    acquire_each(keys, decisions, now, costs);
  }
  /// The same, at the present time.
  void try_acquire_many(std::span<const Key> keys, std::span<Decision> decisions,
                        std::span<const std::uint64_t> costs = {}) {
    acquire_each(keys, decisions, at(), costs);
  }
  /// The same, of views.
  void try_acquire_many(std::span<const std::string_view> keys, std::span<Decision> decisions, Time now,
                        std::span<const std::uint64_t> costs = {})
    requires kTakesViews
  {
    acquire_each(keys, decisions, now, costs);
  }
  /// The same, of views, at the present time.
  void try_acquire_many(std::span<const std::string_view> keys, std::span<Decision> decisions,
                        std::span<const std::uint64_t> costs = {})
    requires kTakesViews
  {
    acquire_each(keys, decisions, at(), costs);
  }

  /// Takes as many tokens as there are, at most `most`. Not for leaky buckets.
  Granted acquire_up_to(KeyArgument key, std::uint64_t most, Time now)
    requires kGivesBack
  {
    return core_.acquire_up_to(Bytes(key), most, now);
  }
  /// The same, at the present time.
  Granted acquire_up_to(KeyArgument key, std::uint64_t most)
    requires kGivesBack
  {
    return core_.acquire_up_to(Bytes(key), most, at());
  }

  // The verbs below answer what try_acquire(key, 0) then says. What each means: see Verbs.

  /// Gives tokens back. Not for leaky buckets.
  Decision refund(KeyArgument key, std::uint64_t cost, Time now)
    requires kGivesBack
  {
    return core_.refund(Bytes(key), cost, now, std::nullopt);
  }
  /// The same, at the present time.
  Decision refund(KeyArgument key, std::uint64_t cost)
    requires kGivesBack
  {
    return core_.refund(Bytes(key), cost, at(), std::nullopt);
  }
  /// With the time `charged` of the charge (windows and log): nothing once that charge no longer counts.
  Decision refund(KeyArgument key, std::uint64_t cost, Time now, std::optional<Time> charged)
    requires kHasWindows
  {
    return core_.refund(Bytes(key), cost, now, charged);
  }

  /// For a cost known only afterwards: charges actual − reserved now, into debt when needed, or refunds the difference.
  Decision settle(KeyArgument key, std::uint64_t reserved, std::uint64_t actual, Time now) {
    return core_.settle(Bytes(key), reserved, actual, now, std::nullopt);
  }
  /// The same, at the present time.
  Decision settle(KeyArgument key, std::uint64_t reserved, std::uint64_t actual) {
    return core_.settle(Bytes(key), reserved, actual, at(), std::nullopt);
  }
  /// With the time `charged` of the charge (windows and log): a refund does nothing once that charge no longer counts.
  Decision settle(KeyArgument key, std::uint64_t reserved, std::uint64_t actual, Time now, std::optional<Time> charged)
    requires kHasWindows
  {
    return core_.settle(Bytes(key), reserved, actual, now, charged);
  }

  /// Takes without asking, into a debt at most `limit` deep.
  Decision penalize(KeyArgument key, std::uint64_t cost, Time now) { return core_.penalize(Bytes(key), cost, now); }
  /// The same, at the present time.
  Decision penalize(KeyArgument key, std::uint64_t cost) { return core_.penalize(Bytes(key), cost, at()); }

  // Ahead of time, token and leaky buckets: see WaitingVerbs. Each key has a line of its own while somebody waits.

  /// Takes `cost` for the first instant at which it can be had, but now, unless that is more than `max_wait` from now.
  [[nodiscard]] Reservation reserve(KeyArgument key, std::uint64_t cost, std::chrono::nanoseconds max_wait, Time now)
    requires kWaits
  {
    return core_.reserve(Bytes(key), cost, max_wait, now, clock_);
  }
  /// The same, at the present time.
  [[nodiscard]] Reservation reserve(KeyArgument key, std::uint64_t cost, std::chrono::nanoseconds max_wait)
    requires kWaits
  {
    return core_.reserve(Bytes(key), cost, max_wait, at(), clock_);
  }

  /// Waits until `cost` can be had, and takes it; or returns at once, having taken nothing, when that can only be after
  /// `deadline`, or never. A stop request ends the wait and gives back what it took.
  WaitResult wait(KeyArgument key, std::uint64_t cost = 1, const Deadline& deadline = {}, std::stop_token stop = {})
    requires kWaits
  {
    return core_.wait(Bytes(key), cost, deadline, std::move(stop), clock_);
  }

 private:
  template <typename KeyOrView>
  void acquire_each(std::span<const KeyOrView> keys, std::span<Decision> decisions, Time now,
                    std::span<const std::uint64_t> costs) {
    constexpr std::size_t kBatch = 32;
    std::array<std::optional<Bytes>, kBatch> bytes;
    std::array<std::string_view, kBatch> views;
    for (std::size_t begin = 0; begin < keys.size(); begin += kBatch) {
      const std::size_t count = std::min(kBatch, keys.size() - begin);
      for (std::size_t i = 0; i < count; ++i) views[i] = bytes[i].emplace(keys[begin + i]);
      core_.try_acquire_many(std::span(views).first(count), costs.empty() ? costs : costs.subspan(begin, count),
                             decisions.subspan(begin, count), now);
    }
  }

  friend std::shared_ptr<internal::Waits> internal_waits_of(Keyed& limiter, KeyArgument key)
    requires kWaits
  {
    return limiter.core_.waits(Bytes(key), limiter.clock_);
  }
};

/// A semaphore with leases for each key.
///
///     sluice::Keyed<sluice::Concurrency, std::string> per_tenant{{.rate = 10}};
///     if (auto lease = per_tenant.try_acquire(tenant)) { /* work; released at the end of the block */ }
template <typename Key>
class Keyed<Concurrency, Key> : public KeyedBase<Concurrency, Key> {
  using Base = KeyedBase<Concurrency, Key>;
  using Bytes = typename Base::Bytes;
  using Base::at;
  using Base::core_;

 public:
  /// The numbers that all keys share.
  using Numbers = typename Base::Numbers;
  /// What a call takes for a key.
  using KeyArgument = typename Base::KeyArgument;

  /// What try_acquire got: a lease, or nothing. Move-only; gives the lease back when it is destroyed. Must not outlive
  /// its Keyed; need not keep its key alive.
  class Lease {
   public:
    /// Takes over what `other` holds, which then holds nothing and is as if denied.
    Lease(Lease&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)),
          lease_(std::exchange(other.lease_, {.decision = {.allowed = false}, .key = {}})) {}
    /// Gives back what it holds, and takes over what `other` holds.
    Lease& operator=(Lease&& other) noexcept {
      if (this != &other) {
        release();
        owner_ = std::exchange(other.owner_, nullptr);
        lease_ = std::exchange(other.lease_, {.decision = {.allowed = false}, .key = {}});
      }
      return *this;
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { release(); }

    /// Was it granted?
    [[nodiscard]] explicit operator bool() const noexcept { return lease_.decision.allowed; }
    /// Granted or denied, and the figures.
    [[nodiscard]] const Decision& decision() const noexcept { return lease_.decision; }
    /// A number that no other lease of this Keyed has; 0 when there is no lease (denied, or of cost 0).
    [[nodiscard]] std::uint64_t id() const noexcept { return lease_.id; }
    /// Gives the lease back now. False when it isn't held any more: given back before, timed out, or its key forgotten.
    bool release(Time now) noexcept {
      return owner_ != nullptr && std::exchange(owner_, nullptr)->core_.release(lease_.key, lease_.id, now);
    }
    /// The same, at the present time.
    bool release() noexcept { return owner_ != nullptr && release(owner_->at()); }
    /// Leaves the lease held: it is given back by Keyed::release(key, id) or when its time is up.
    std::uint64_t detach() noexcept {
      owner_ = nullptr;
      return lease_.id;
    }

   private:
    friend class Keyed;
    Lease(Keyed* owner, const internal::KeyedCore::Leased& lease) noexcept
        : owner_(lease.id == 0 ? nullptr : owner), lease_(lease) {}
    Keyed* owner_;  // null: nothing to give back
    internal::KeyedCore::Leased lease_;
  };

  /// As Keyed of other algorithms.
  explicit Keyed(const Numbers& numbers, const KeyedOptions& options = {}) : Base(numbers, options) {}

  /// A lease of `cost` of the key's tokens, if as many are free. Cost 0 asks only, and is always granted.
  [[nodiscard]] Lease try_acquire(KeyArgument key, std::uint64_t cost, Time now) {
    return Lease(this, core_.acquire_lease(Bytes(key), cost, now));
  }
  /// The same, at the present time.
  [[nodiscard]] Lease try_acquire(KeyArgument key, std::uint64_t cost = 1) { return try_acquire(key, cost, at()); }

  /// Gives a detached lease back. False, and no change, when it isn't held: unknown, given back before, timed out, or
  /// its key forgotten.
  bool release(KeyArgument key, std::uint64_t id, Time now) noexcept { return core_.release(Bytes(key), id, now); }
  /// The same, at the present time.
  bool release(KeyArgument key, std::uint64_t id) noexcept { return release(key, id, at()); }
};

}  // namespace sluice
