// The bucket that a line stands at.
#pragma once

#include <cstdint>

#include "algorithm/leaky_bucket.h"
#include "algorithm/token_bucket.h"

namespace sluice::waiting {

using State = algorithm::TokenBucket::State;

/// The same numbers as a token bucket and as a queue of slots; which of them counts is the line's to know.
struct Book {
  const algorithm::TokenBucket& tokens;
  const algorithm::LeakyBucket& slots;
};

/// Somebody's bucket: its state, changed in one step. Thread-safe.
class Account {
 public:
  /// Calls change(book, state, now) and makes the result the bucket's state. When somebody else is charged in between,
  /// once more from the state after that: only the last call counts. `now` may have been moved on to the state's time.
  template <typename Change>
  void change(std::int64_t now, Change change) noexcept {
    struct Call final : Step {
      explicit Call(Change& of) : function(of) {}
      void operator()(const Book& book, State& state, std::int64_t at) override { function(book, state, at); }
      Change& function;
    };
    Call call(change);
    step(now, call);
  }
  /// The machine's steady clock.
  [[nodiscard]] virtual std::int64_t machine_now() const noexcept = 0;

 protected:
  class Step {
   public:
    virtual void operator()(const Book& book, State& state, std::int64_t at) = 0;

   protected:
    ~Step() = default;
  };
  ~Account() = default;
  virtual void step(std::int64_t now, Step& change) noexcept = 0;
};

}  // namespace sluice::waiting
