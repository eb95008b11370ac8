// Does a request pass, given which of its charges fit? The one rule that every store judges by.
#pragma once

#include <cstddef>
#include <span>

#include "sluice/decision.h"
#include "store/charge.h"

namespace sluice::store {

/// Gathers the charges of one request, in any order. A value of two bytes; not thread-safe.
class Admission {
 public:
  void add(Enforcement enforcement, bool fits) {
    switch (enforcement) {
      case Enforcement::enforce:
        refused_ |= !fits;
        break;
      case Enforcement::quota:
        quota_ = fits || quota_ == Quota::some ? Quota::some : Quota::exhausted;
        break;
      case Enforcement::shadow:
        break;
    }
  }
  /// True unless an enforced charge does not fit, or there are quota charges and none of them fits.
  [[nodiscard]] bool admitted() const { return !refused_ && quota_ != Quota::exhausted; }
  /// True when there are quota charges and none of them fits: then they deny as enforced ones do.
  [[nodiscard]] bool quota_exhausted() const { return quota_ == Quota::exhausted; }

 private:
  enum class Quota : unsigned char { none, exhausted, some };
  bool refused_ = false;
  Quota quota_ = Quota::none;
};

/// The same over decisions that have been made; `fits` of a charge is its decision's `allowed`.
/// Precondition: as many decisions as charges.
[[nodiscard]] inline Admission admission_of(std::span<const Charge> charges, std::span<const Decision> decisions) {
  Admission admission;
  for (std::size_t i = 0; i < charges.size(); ++i) admission.add(charges[i].enforcement, decisions[i].allowed);
  return admission;
}

}  // namespace sluice::store
