// The one interface of everything that holds counters: memory, Redis, and the decorators around them.
#pragma once

#include <span>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "store/charge.h"
#include "store/failure.h"
#include "store/verb.h"

namespace sluice::store {

/// One request at a store: its charges and room for their decisions. The caller owns it and keeps it in place until it
/// is answered. Charges are distinct in (limit id, key): equal ones have been summed before.
class Check {
 public:
  Check() = default;
  Check(const Check&) = delete;
  Check& operator=(const Check&) = delete;

  std::span<const Charge> charges;
  /// As many as charges. Each is that charge's own verdict: in a request that another charge denies, one that would fit
  /// has allowed = true and tells the state as it is (nothing was taken).
  std::span<Decision> decisions;
  /// Empty, or as many as charges: the id of the lease that a charge of a concurrency limit took; 0 when it took none.
  std::span<std::uint64_t> leases;
  /// Empty, or as many as charges: what each decision would be if nothing had been taken. Filled by the Redis store
  /// alone, for its own steps.
  std::span<Decision> untaken;
  /// Empty, or as many as charges: what had been counted in the window after a charge of a limit with a threshold.
  std::span<std::uint64_t> counts;
  /// Of Store::apply: what is done to the key of the one charge, whose cost means nothing; or peek, of any charges.
  /// Else null.
  const Verb* verb = nullptr;
  /// Was the request as a whole admitted (and so charged; peek: would it be)? Of another verb: was it done (false: the
  /// lease was not held)?
  bool admitted = false;
  /// Anything but none: the store could not answer, and `decisions` and `admitted` mean nothing.
  Failure failure = Failure::none;

  /// Called once, on the thread that called Store::check, when that call returned Progress::pending.
  virtual void complete() = 0;

 protected:
  ~Check() = default;
};

enum class Progress : bool { answered, pending };

/// All or nothing: every charge is looked at, and only if the request is admitted is any taken (see Enforcement).
class Store {
 public:
  virtual ~Store() = default;
  /// Answers `check` within this call, or returns pending and calls check.complete() later. Never throws, never blocks
  /// on the network. Thread-safety: see the implementation (memory: any thread; Redis: the io thread that made it).
  [[nodiscard]] virtual Progress check(Check& check, Time now) = 0;
  /// Carries out check.verb; the decision is what a check of cost 0 says then. Answers as check() does, but no word of
  /// the policy stands in for a store that fails: the failure is told, and the verb may have been done (see
  /// may_be_done). `unsupported`, when the limit's algorithm has no such verb (see has_verb). peek is of any number of
  /// charges and answers as check() would, decision by decision.
  [[nodiscard]] virtual Progress apply(Check& check, Time /*now*/) {
    check.failure = Failure::unsupported;
    return Progress::answered;
  }
  /// Withdraws a pending check, whose complete() will not be called. A charge that was already sent stays charged.
  virtual void cancel(Check& check) = 0;
  /// False while checks cannot be answered from the state this store stands for (Redis unreachable).
  [[nodiscard]] virtual bool ready() const { return true; }
  /// Learns what it should know before it is asked. Called now and then on a thread that may call check(), at least of
  /// one of the stores that share a state.
  virtual void tend(Time /*now*/) {}
};

}  // namespace sluice::store
