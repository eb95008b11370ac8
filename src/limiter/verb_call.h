// A verb on the counters that a request matches: descriptors → keys → store → answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "limiter/call.h"
#include "limiter/charge_list.h"
#include "limiter/counter_verb.h"
#include "metrics/metrics.h"
#include "policy/policy.h"
#include "policy/request.h"
#include "sluice/clock.h"
#include "sluice/decision.h"
#include "store/store.h"

namespace sluice::limiter {

/// What came of one descriptor.
struct VerbStatus {
  const policy::Rule* rule = nullptr;  ///< null: nothing limits it
  /// Was it done to a counter? If not, either there is none (no rule, or an unlimited one), or `failure` says why.
  bool done = false;
  bool held = true;  ///< release: false: there is no such lease (any more), so nothing was done
  /// release, and settle of a reservation: why there was nothing to give back here. `nothing`: the request took nothing
  /// from this counter; `counter`: it took from another one, as the limit has changed since.
  enum class Other : std::uint8_t { no, nothing, counter };
  Other other = Other::no;
  store::Failure failure = store::Failure::none;
  Decision decision;  ///< done: what a check of cost 0 says then
};

/// What came of a request. Rules live as long as the VerbCall is not started again.
struct VerbAnswer {
  Answer::Problem problem = Answer::Problem::none;  ///< nothing was looked at; nothing else is set
  CounterVerb::Kind kind = CounterVerb::Kind::reset;
  bool known_domain = true;
  bool failed = false;    ///< any failure
  bool any_done = false;  ///< any counter
  bool held = true;       ///< false: the reservation, or every lease, has ended before; then nothing was done
  std::vector<VerbStatus> statuses;  ///< one per descriptor, in order
};

/// Each counter is changed in one atomic step of its own: unlike a check, a verb never depends on another counter's
/// state, so there is nothing that must happen together; but when the store fails, it may be done to some and not to
/// others, and the statuses say to which. A reservation is ended first, in a step of its own, and only who has ended it
/// changes counters: of several who try one does. The costs of refund and penalize are the request's; descriptors that
/// share a counter do it once, with the sum. No limit's on_store_failure stands in; but what a lease or a reservation
/// took while one did is given back there. A lease or a reservation gives back to no counter but those that it took
/// from.
///
/// Reusable. Not thread-safe: used by the thread that owns the store.
class VerbCall final {
 public:
  /// `answered` is called when a pending call has been answered.
  class Owner {
   public:
    virtual void answered(VerbCall& call) = 0;

   protected:
    ~Owner() = default;
  };

  /// Both must outlive the call. What was done, or failed, is counted in `metrics`, once per counter.
  VerbCall(Owner& owner, metrics::Shard& metrics);
  VerbCall(const VerbCall&) = delete;
  VerbCall& operator=(const VerbCall&) = delete;
  ~VerbCall();

  /// Answered: answer() is ready. Pending: Owner::answered follows. The request's views need not live on. `policy` may
  /// be null (no policy loaded).
  [[nodiscard]] store::Progress start(const Request& request, const CounterVerb& verb,
                                      const std::shared_ptr<const policy::Policy>& policy, store::Store& store,
                                      Time now);
  /// The two halves of start(). The first finds the request's counters: answer().problem says whether anything keeps
  /// the verb from being done. Nothing is done yet.
  void prepare(const Request& request, const CounterVerb& verb, const std::shared_ptr<const policy::Policy>& policy);
  /// `verb` is what was prepared.
  [[nodiscard]] store::Progress run(const CounterVerb& verb, store::Store& store, Time now);
  /// Withdraws a pending call: its owner hears nothing more of it. What has been sent may be done.
  void cancel();
  [[nodiscard]] const VerbAnswer& answer() const { return answer_; }

 private:
  /// One counter.
  class Step;

  void step_done();
  [[nodiscard]] bool run_steps();
  [[nodiscard]] Answer::Problem refusal(const CounterVerb& verb) const;
  [[nodiscard]] std::uint64_t descriptors_of(std::size_t charge) const;
  [[nodiscard]] std::uint64_t lease_of(std::size_t charge, std::span<const std::uint64_t> leases) const;
  [[nodiscard]] std::uint64_t taken_from(std::size_t charge, const CounterVerb& verb, VerbStatus::Other& other) const;
  void add_steps(const CounterVerb& verb);
  void end_reservation(const CounterVerb::Reservation& reservation);
  void finish();

  Owner& owner_;
  metrics::Shard& metrics_;
  VerbAnswer answer_;
  std::shared_ptr<const policy::Policy> policy_;
  ChargeList list_;
  store::Store* pending_at_ = nullptr;
  store::Store* store_ = nullptr;      ///< that the call was started on
  Time now_;                           ///< of the start
  std::unique_ptr<Step> reservation_;  ///< is ended before the others begin; null: there is none
  std::string place_;                  ///< of its lease
  std::size_t pending_ = 0;
  CounterVerb::Kind kind_ = CounterVerb::Kind::reset;
  std::vector<std::unique_ptr<Step>> steps_;
  bool has_begun_ = false;  ///< the steps have, as no reservation kept them from it
};

}  // namespace sluice::limiter
