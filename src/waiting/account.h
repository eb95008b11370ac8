// The bucket that a line stands at.
#pragma once

#include <cstdint>
#include <shared_mutex>

#include "algorithm/leaky_bucket.h"
#include "algorithm/token_bucket.h"

namespace sluice::waiting {

using State = algorithm::TokenBucket::State;

/// A bucket's numbers.
struct Book {
  const algorithm::TokenBucket& tokens;           ///< a leaky bucket's: of its slots
  const algorithm::LeakyBucket* slots = nullptr;  ///< a leaky bucket's; null for a token bucket

  /// Calls function(numbers) with those that count.
  template <typename Function>
  auto on(Function&& function) const {  // NOLINT(modernize-use-nodiscard): what it returns is the function's
    return slots != nullptr ? function(*slots) : function(tokens);
  }
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
  /// Held by whoever goes by the numbers for more than one change, where others may put new ones in their place; empty
  /// where nobody does. Taken before the line's lock.
  [[nodiscard]] virtual std::shared_lock<std::shared_mutex> keep_numbers() const { return {}; }
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
