#include <sluice/adaptive_concurrency.h>
#include <sluice/clock.h>
#include <sluice/concurrency.h>
#include <sluice/decision.h>
#include <sluice/fixed_window.h>
#include <sluice/keyed.h>
#include <sluice/leaky_bucket.h>
#include <sluice/limit.h>
#include <sluice/sharded_token_bucket.h>
#include <sluice/sliding_log.h>
#include <sluice/sliding_window.h>
#include <sluice/testing/simulated_clock.h>
#include <sluice/token_bucket.h>
#include <sluice/wait.h>

#include <memory>

bool other_file_agrees();

// A class of the user's own, derived from one of the library's.
namespace {

class StoppedClock final : public sluice::Clock {
 public:
  [[nodiscard]] sluice::Time now() const override { return {.steady = 7, .utc = 7}; }
};

}  // namespace

bool other_file_agrees() {
  const std::unique_ptr<sluice::Clock> clock = std::make_unique<StoppedClock>();
  sluice::TokenBucket bucket{{.rate = 1, .burst = 1}};
  return bucket.try_acquire(1, clock->now()).allowed && !bucket.try_acquire(1, clock->now()).allowed &&
         dynamic_cast<sluice::SystemClock*>(clock.get()) == nullptr;
}
