#include "policy/envoy_rules.h"

#include "sluice/limit.h"

namespace sluice::policy {

void count_as_envoy(store::CountedLimit& limit, const EnvoyRules& rules) {
  Limit& numbers = limit.numbers;
  if (numbers.algorithm != Algorithm::fixed_window || numbers.align != Align::epoch) return;
  numbers.count_denied = true;
  if (!rules.counts_each()) return;
  limit.threshold = numbers.rate;
  numbers.rate = kMaxRate;
}

}  // namespace sluice::policy
