// A command on limits of the policy: command → limiter → reply.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "front/resp/policy_command.h"
#include "front/resp/step.h"
#include "limiter/call.h"
#include "limiter/verb_call.h"
#include "metrics/metrics.h"
#include "policy/policy.h"
#include "sluice/clock.h"
#include "store/store.h"

namespace sluice::resp {

/// For one command. Ends a pending one when destroyed. Not thread-safe.
class PolicyStep final : public Step, private limiter::Call::Owner, private limiter::VerbCall::Owner {
 public:
  /// Both must outlive the step.
  PolicyStep(Step::Owner& owner, metrics::Shard& metrics) : owner_(owner), metrics_(metrics) {}

  /// Answered: is_done. The command need not live on; `policy` may be null.
  [[nodiscard]] store::Progress start(const PolicyCommand& command, const std::shared_ptr<const policy::Policy>& policy,
                                      store::Store& store, Time now);
  /// Of a check or a peek: an array of two, the five integers of CL.THROTTLE for all limits taken together, and the
  /// name of the limit that decided (null: none did); of what was acquired or reserved, three: and what is to be given
  /// back. Of another verb: how many counters it was done to.
  void write(ReplyWriter& reply) const override;

 private:
  void answered(limiter::Call& call) override;
  void answered(limiter::VerbCall& call) override;
  static void write_check(const limiter::Answer& answer, ReplyWriter& reply);
  static void write_verb(const limiter::VerbAnswer& answer, ReplyWriter& reply);

  Step::Owner& owner_;
  metrics::Shard& metrics_;
  std::optional<limiter::Call> call_;
  std::optional<limiter::VerbCall> verb_call_;
};

}  // namespace sluice::resp
