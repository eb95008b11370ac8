// The messages in a drainer's hands that are charged alike, with their limit.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "limiter/charge_list.h"
#include "policy/policy.h"
#include "queue/drain_turns.h"
#include "queue/token_schedule.h"
#include "store/store.h"

namespace sluice::queue {

/// A question to the store about one lane's counters.
class DrainQuestion final : public store::Check {
 public:
  enum class Kind : std::uint8_t { none, reserve, check, refund };
  using Answered = std::function<void(DrainQuestion& question)>;

  DrainQuestion(DrainLane& lane, Answered answered) : lane_(lane), answered_(std::move(answered)) {}
  void complete() override { answered_(*this); }
  [[nodiscard]] DrainLane& lane() const { return lane_; }

  Kind kind = Kind::none;  ///< none: nothing is asked
  std::uint64_t amount = 0;
  store::Verb what;

 private:
  DrainLane& lane_;
  const Answered answered_;
};

struct DrainLane {
  enum class Mode : std::uint8_t {
    free,     ///< nothing limits them
    reserve,  ///< one token bucket: tokens are taken ahead
    ask       ///< the limits are asked when a message's turn comes
  };

  DrainLane(std::string its_name, DrainQuestion::Answered answered)
      : name(std::move(its_name)), question(*this, std::move(answered)) {}

  /// What the message is charged in the policy, and the name of the lane of all that are charged so.
  static std::string charges_of(const Message& message, const policy::Policy* policy, limiter::ChargeList& list);
  static bool can_reserve(const limiter::ChargeList& list);
  /// Takes over the limits and their numbers. The charges are those of a message of this lane. `horizon`: how far ahead
  /// tokens are reserved.
  void set_limits(const limiter::ChargeList& list, std::shared_ptr<const policy::Policy> its_policy,
                  std::chrono::nanoseconds horizon);
  [[nodiscard]] const Limit& numbers() const { return charges[0].limit->numbers; }

  const std::string name;
  Mode mode = Mode::free;
  std::shared_ptr<const policy::Policy> policy;  ///< keeps the limits of the charges
  DrainItemPtr outdated_by;                      ///< there is a newer policy: a message to ask it about
  std::deque<std::string> keys;
  std::vector<store::Charge> charges;
  std::vector<Decision> decisions;
  std::unique_ptr<TokenSchedule> schedule;  ///< mode reserve
  std::int64_t grain = 0;                   ///< ns; of a fast limit, whose messages go some at a time
  std::uint64_t chunk = 1;                  ///< tokens that one question reserves, at least
  std::size_t most_staged = 1;

  DrainTurns turns;
  std::multimap<std::int64_t, DrainItemPtr> later;  ///< by steady time: to be delivered again then
  std::deque<DrainItemPtr> unreached;               ///< their tickets could not be asked
  std::int64_t ask_again_at = 0;                    ///< when they may be asked again
  DrainQuestion question;
  bool is_granted = false;  ///< mode ask: the next may go at grant_at
  std::int64_t grant_at = 0;
  std::int64_t blocked_until = 0;
  std::int64_t wake = 0;  ///< 0: none
  bool is_starved = false;
  bool is_touched = false;
};

}  // namespace sluice::queue
