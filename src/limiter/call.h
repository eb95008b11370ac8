// One request on its way: descriptors → charges → store → answer. Every front goes through here.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "limiter/charge_list.h"
#include "limiter/hold.h"
#include "metrics/metrics.h"
#include "policy/policy.h"
#include "policy/request.h"
#include "sluice/clock.h"
#include "sluice/decision.h"
#include "store/store.h"

namespace sluice::limiter {

/// What one descriptor of the request was told.
struct Status {
  bool over_limit = false;             ///< this descriptor's own verdict; false in shadow mode
  bool never_fits = false;             ///< the cost is above the limit, whatever its state
  const policy::Rule* rule = nullptr;  ///< null: nothing limits it
  Decision decision;                   ///< meaningful when rule is set and not unlimited
  std::uint64_t cost = 0;              ///< that was asked of its counter, with all others that lead there
  std::string_view key;                ///< of its counter; as long as the call is not started again
  std::uint64_t lease = 0;             ///< that was taken from a limit of concurrency; 0: none
};

/// The answer to a request. `rule` pointers live as long as the Call is not started again.
struct Answer {
  enum class Problem : std::uint8_t {
    none,
    empty_domain,
    no_descriptors,
    cost_out_of_range,
    no_policy,
    needs_lease,   ///< a limit of concurrency, and who asks could not give its lease back, or asks for what it has not
    not_enforced,  ///< a ban of what a limit in shadow or quota mode counts
    /// Acquire, reserve: what is given to the caller would be longer than what a port takes back.
    too_long_to_hold
  };
  Problem problem = Problem::none;  ///< the request could not be judged; nothing else is set
  bool allowed = true;
  bool known_domain = true;
  bool explain = false;          ///< it was asked for
  std::vector<Status> statuses;  ///< one per descriptor, in order
  /// The request's decision taken together (see combine.h); `which` is the index of the descriptor that its figures are
  /// of, and `deciding` its rule, null when no limit took part. A shadow rule decides only when there are no others; an
  /// unlimited one, without figures, when there are not even those.
  Decision decision;
  const policy::Rule* deciding = nullptr;
  /// False when the store failed and the policy answered in its place (decision.source is fallback_allow or
  /// fallback_deny): there are no figures to show.
  bool has_figures = true;
  /// JSON object that tells the request and the `metadata` of the limits that did not deny it, as envoyproxy/ratelimit
  /// does; empty unless the policy's EnvoyRules ask for it.
  std::string dynamic_metadata;
  /// What was acquired or reserved (Request::leases, Request::reserve), when it was allowed: to be given back by it.
  std::optional<Hold> hold;
  /// Of a peek alone, for which no word of the policy stands in: why the store could not answer; then nothing but this
  /// and the statuses' rules is set.
  store::Failure failure = store::Failure::none;
};

/// What is wrong with a request, if anything is; `policy` may be null.
[[nodiscard]] Answer::Problem problem_of(const Request& request, const policy::Policy* policy);

/// Reusable: buffers keep their capacity, so a call on the memory store allocates nothing after warm-up. Not
/// thread-safe: used by the io thread that owns it.
class Call final : private store::Check {
 public:
  /// `done` is called when a pending call has been answered.
  class Owner {
   public:
    virtual void answered(Call& call) = 0;

   protected:
    ~Owner() = default;
  };

  /// Both must outlive the call. Verdicts are counted in `metrics`, once per judged descriptor.
  Call(Owner& owner, metrics::Shard& metrics) : owner_(owner), metrics_(metrics) {}
  ~Call();

  /// Judges `request`, or looks how it would be judged (Request::peek): then nothing is taken and nothing counted.
  /// Answered: answer() is ready. Pending: Owner::answered follows. The request's views need not live
  /// on. `policy` may be null (no policy loaded).
  [[nodiscard]] store::Progress start(const Request& request, const std::shared_ptr<const policy::Policy>& policy,
                                      store::Store& store, Time now);
  /// The two halves of start(). The first finds the request's limits: answer().problem says whether anything keeps it
  /// from being judged. Nothing is counted yet.
  void prepare(const Request& request, const std::shared_ptr<const policy::Policy>& policy);
  /// `request` is what was prepared.
  [[nodiscard]] store::Progress run(const Request& request, store::Store& store, Time now);
  /// Withdraws a pending call; its owner hears nothing more of it.
  void cancel();
  [[nodiscard]] const Answer& answer() const { return answer_; }
  /// The answer is no longer needed, and with it the policy that it points into. Not while pending.
  void forget() { policy_.reset(); }

  /// How long a front holds the answer back: the longest delay of the leaky buckets whose policy says `delay: hold`.
  /// Zero: not at all.
  [[nodiscard]] std::chrono::nanoseconds hold() const;
  /// The answer has been held back: the delays of those limits are over.
  void end_hold();
  /// The caller cannot wait so long: the answer becomes a denial, which says when the slot would have been. The slot
  /// stays taken, as slots are never given twice.
  void refuse_hold();

 private:
  void complete() override;
  void finish();
  void decide_without_charges();
  void draft_hold(const Request& request, Time now);
  void complete_hold();
  void count(const Status& status, bool is_override);
  void count_hits(const ChargeList::Matched& matched, const Status& status);
  void apply_envoy_rules();

  Owner& owner_;
  metrics::Shard& metrics_;
  Answer answer_;
  /// Kept after the answer, as its rules are the policy's.
  std::shared_ptr<const policy::Policy> policy_;
  store::Store* pending_at_ = nullptr;
  std::int64_t asked_at_ = 0;  ///< steady ns
  ChargeList list_;
  std::vector<Decision> decisions_buffer_;
  std::vector<std::uint64_t> counts_buffer_;  ///< see store::Check::counts
  std::vector<std::uint64_t> leases_buffer_;
};

}  // namespace sluice::limiter
