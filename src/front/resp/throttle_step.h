// A command on a counter whose numbers come with it: command → charge → store → reply.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "front/resp/step.h"
#include "front/resp/throttle.h"
#include "front/resp/throttle_limits.h"
#include "metrics/metrics.h"
#include "sluice/clock.h"
#include "store/store.h"

namespace sluice::resp {

/// Reusable once done. Ends a pending one when destroyed. Not thread-safe.
class ThrottleStep final : public Step, private store::Check {
 public:
  /// All must outlive the step.
  ThrottleStep(Owner& owner, ThrottleLimits& limits, store::Store& store, metrics::Shard& metrics)
      : owner_(owner), limits_(limits), store_(store), metrics_(metrics) {}
  ~ThrottleStep() override;

  /// Answered: is_done. The key need not live on.
  [[nodiscard]] store::Progress start(const Throttle& throttle, Time now);
  /// Forgets a key.
  [[nodiscard]] store::Progress start_reset(std::string_view key, Time now);
  void write(ReplyWriter& reply) const override;
  /// Once done: could the store not answer? If it could, what it has decided.
  [[nodiscard]] bool failed() const { return failure != store::Failure::none; }
  [[nodiscard]] const Decision& decision() const { return decision_; }

 private:
  void prepare(std::string_view key, const Bucket& bucket);
  [[nodiscard]] store::Progress run(Time now);
  void finish();
  void complete() override;

  Owner& owner_;
  ThrottleLimits& limits_;
  store::Store& store_;
  metrics::Shard& metrics_;
  Dialect dialect_ = Dialect::cell;
  store::Verb done_;  ///< what `verb` points to
  std::shared_ptr<const store::CountedLimit> limit_;
  std::string key_;
  store::Charge charge_;
  Decision decision_;
  bool is_pending_ = false;
};

}  // namespace sluice::resp
