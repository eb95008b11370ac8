// Keys that are denied for a time, whatever their limit says.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "sluice/clock.h"
#include "store/relay_pool.h"
#include "store/store.h"

namespace sluice::store {

/// The counter that stands for the bans of a limit's keys: a bucket that fills by one token a microsecond, so a debt of
/// so many tokens is a ban of so many microseconds. Shared by all threads, for the life of the process.
[[nodiscard]] const CountedLimit& ban_limit_of(const CountedLimit& limit);
/// The counter that is in debt while there is any ban at all; its one key is kAnyBan.
[[nodiscard]] const CountedLimit& any_ban_limit();
inline constexpr std::string_view kAnyBan = "any";
/// Longest ban.
inline constexpr std::chrono::hours kLongestBan{24 * 3'650};
/// Sets a ban on a fresh counter of these: 0 … kLongestBan.
[[nodiscard]] Verb ban_for(std::chrono::microseconds time);

/// May there be a ban? As all io threads together know. Thread-safe.
class BanWatch {
 public:
  static constexpr std::chrono::seconds kInterval{1};

  /// `shared`: others may ban, too, so the store is asked by the first check and once a second from then on.
  explicit BanWatch(bool shared) : shared_(shared) {}

  [[nodiscard]] bool may_be(Time now) const { return now.steady < until_.load(std::memory_order_relaxed); }
  /// Is it this thread's turn to ask the store?
  [[nodiscard]] bool is_to_ask(Time now) {
    if (!shared_) return false;
    std::int64_t last = asked_.load(std::memory_order_relaxed);
    if (last != INT64_MIN && now.steady - last < std::chrono::nanoseconds(kInterval).count()) return false;
    return asked_.compare_exchange_strong(last, now.steady, std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t until() const { return until_.load(std::memory_order_relaxed); }
  /// There are bans until then (steady ns), as the store knew, unless one was set here since until() was `before`.
  void learn(std::int64_t before, std::int64_t until) {
    until_.compare_exchange_strong(before, until, std::memory_order_relaxed);
  }
  /// A ban was set here.
  void extend(std::int64_t until) {
    std::int64_t known = until_.load(std::memory_order_relaxed);
    while (known < until && !until_.compare_exchange_weak(known, until, std::memory_order_relaxed)) {
    }
  }

 private:
  const bool shared_;
  std::atomic<std::int64_t> until_{INT64_MIN};
  std::atomic<std::int64_t> asked_{INT64_MIN};
};

/// Asks the primary. While there may be bans, each charge that can deny brings the ban counter of its key along in the
/// same atomic step, and a charge whose key is banned is denied with Mark::banned. Without bans: the cost of one load.
/// One per io thread; not thread-safe. `watch` is shared by all and must outlive it. Limits in shadow or quota mode,
/// which do not deny by themselves, have no bans.
class BanStore final : public Store {
 public:
  BanStore(std::shared_ptr<Store> primary, BanWatch& watch);
  /// Checks that are pending are never completed.
  ~BanStore() override;

  [[nodiscard]] Progress check(Check& check, Time now) override;
  [[nodiscard]] Progress apply(Check& check, Time now) override;
  void cancel(Check& check) override;
  [[nodiscard]] bool ready() const override { return primary_->ready(); }

 private:
  class Relay;
  class Question;

  [[nodiscard]] Progress with_bans(Check& check, Time now);
  void ask(Time now);
  void relayed(Relay& relay);
  void answer_from(Relay& relay);
  [[nodiscard]] const CountedLimit& find_limit(const CountedLimit& limit);

  std::shared_ptr<Store> primary_;
  BanWatch& watch_;
  RelayPool<Relay> relays_;
  std::vector<const CountedLimit*> limits_;  ///< by the id of the limit whose bans they are
  std::unique_ptr<Question> question_;
};

}  // namespace sluice::store
