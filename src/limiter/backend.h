// What the parts of the library that are built above Limiter need of it.
#pragma once

#include <memory>

#include "limiter/call.h"
#include "policy/request.h"
#include "policy/snapshot_holder.h"
#include "sluice/limiter.h"
#include "store/store.h"

namespace sluice::limiter {

/// A check of the limiter's thread, with what to do about the answer. Made on any thread; its functions are called on
/// the limiter's, and must not throw.
class Check {
 public:
  virtual ~Check() = default;
  /// What is asked: valid until the answer.
  [[nodiscard]] virtual const Request& request() const = 0;
  /// Called once. Null: the limiter was ended, or the check withdrawn. What it points to is valid for the call only.
  virtual void answered(Call* call) = 0;

 protected:
  Check() = default;
  Check(const Check&) = default;
  Check& operator=(const Check&) = default;
};

/// Thread-safe.
class Backend {
 public:
  /// Are the counters outside of this process? If not, they are memory()'s, which answers at once on any thread.
  [[nodiscard]] virtual bool is_shared() const = 0;
  [[nodiscard]] virtual store::Store& memory() = 0;
  [[nodiscard]] virtual const policy::SnapshotHolder& policies() const = 0;
  [[nodiscard]] virtual const LimiterOptions& options() const = 0;
  /// Precondition: is_shared().
  virtual Limiter::Pending start(std::shared_ptr<Check> check) = 0;

 protected:
  ~Backend() = default;
};

/// The way to a limiter's.
class Access {
 public:
  [[nodiscard]] static Backend& backend(Limiter& limiter);
};

}  // namespace sluice::limiter
