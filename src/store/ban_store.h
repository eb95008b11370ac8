// Keys that are denied for a time, whatever their limit says.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "sluice/clock.h"
#include "store/relay_pool.h"
#include "store/store.h"

namespace sluice::store {

/// The counter that stands for the bans of a limit's keys: a bucket that fills by one token a microsecond, so a debt of
/// so many tokens is a ban of so many microseconds. Shared by all threads, for the life of the process.
[[nodiscard]] const CountedLimit& ban_limit_of(const CountedLimit& limit);
/// The counter that is in debt while there is any ban where that limit's are; its one key is kAnyBan.
[[nodiscard]] const CountedLimit& any_ban_limit_of(const CountedLimit& limit);
inline constexpr std::string_view kAnyBan = "any";
/// Longest ban.
inline constexpr std::chrono::hours kLongestBan{24 * 3'650};
/// Sets a ban on a fresh counter of these: 0 … kLongestBan.
[[nodiscard]] Verb ban_for(std::chrono::microseconds time);

/// May there be a ban? As all io threads together know. Thread-safe.
class BanWatch {
 public:
  /// For so long the store's answer is known: a ban by another daemon holds here no later.
  static constexpr std::chrono::milliseconds kKnownFor{1'000};
  /// How often the store is to be asked, so that no check finds the answer too old.
  static constexpr std::chrono::milliseconds kAskEvery{500};

  /// `shared`: others may ban, too.
  explicit BanWatch(bool shared) : known_until_(shared ? INT64_MIN : INT64_MAX) {}

  /// Has the store answered within kKnownFor? Cost: a load.
  [[nodiscard]] bool is_known(Time now) const { return now.steady < known_until_.load(std::memory_order_acquire); }
  /// As far as is known. Cost: a load.
  [[nodiscard]] bool may_be(Time now) const { return now.steady < until_.load(std::memory_order_relaxed); }
  /// What a question notes when it leaves.
  [[nodiscard]] std::uint64_t bans_set() const { return bans_set_.load(std::memory_order_acquire); }
  /// The store, asked at `asked_at` (steady ns), knew of bans until then. A ban that was set here since bans_set() was
  /// `before` may have come too late for the answer.
  void learn(std::uint64_t before, std::int64_t asked_at, std::int64_t until);
  /// A ban has been set here.
  void extend(std::int64_t until);

 private:
  std::mutex mutex_;  ///< of those who write
  std::atomic<std::int64_t> until_{INT64_MIN};
  std::atomic<std::int64_t> known_until_;
  std::atomic<std::uint64_t> bans_set_{0};
};

/// Asks the primary. While there may be bans, each charge that can deny brings the ban counter of its key along in the
/// same atomic step, and a charge whose key is banned is denied with Mark::banned. Without bans: the cost of two loads.
///
/// Where bans are shared, a check is judged by an answer to "is there any ban?" that is at most BanWatch::kKnownFor
/// old. Without one, as at the start of a process, it waits for the next: then the store may take the time of two
/// checks. When that question fails, so does what has waited for it; when it fails at once though the store serves
/// others (one node of a cluster is away), the check asks for the bans of its own keys.
///
/// One per io thread; not thread-safe. `watch` is shared by all and must outlive it. Limits in shadow or quota mode,
/// which do not deny by themselves, have no bans.
class BanStore final : public Store {
 public:
  BanStore(std::shared_ptr<Store> primary, BanWatch& watch);
  /// Checks that are pending are never completed.
  ~BanStore() override;

  [[nodiscard]] Progress check(Check& check, Time now) override { return judge(check, now); }
  [[nodiscard]] Progress apply(Check& check, Time now) override;
  /// Cost: proportional to the checks pending.
  void cancel(Check& check) override;
  [[nodiscard]] bool ready() const override { return primary_->ready(); }
  /// Asks whether there are bans: to be called every BanWatch::kAskEvery. A store that is known to be away is left to
  /// those who check.
  void tend(Time now) override {
    if (primary_->ready()) ask(now);
  }

 private:
  class Relay;
  class Question;
  struct Waiting {
    Check* check = nullptr;
    Time now;
    Failure failure = Failure::none;  ///< the question's
  };

  [[nodiscard]] Progress judge(Check& check, Time now);
  [[nodiscard]] Progress go_on(Check& check, Time now);
  [[nodiscard]] Progress pass(Check& check, Time now);
  [[nodiscard]] Progress with_bans(Check& check, Time now);
  [[nodiscard]] Progress set_ban(Check& check, Time now);
  void ask(Time now);
  void learn();
  void answered();
  void relayed(Relay& relay);
  void answer_from(Relay& relay);
  [[nodiscard]] const CountedLimit& find_limit(const CountedLimit& limit);

  std::shared_ptr<Store> primary_;
  BanWatch& watch_;
  RelayPool<Relay> relays_;
  std::vector<const CountedLimit*> limits_;  ///< by the id of the limit whose bans they are
  std::unique_ptr<Question> question_;
  std::vector<Waiting> waiting_;   ///< for the question's answer
  std::vector<Waiting> resuming_;  ///< within answered(); without a check: withdrawn
  bool is_resuming_ = false;
};

}  // namespace sluice::store
