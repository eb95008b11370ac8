// Asks an asynchronous store as if it were a blocking one.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "store/store.h"

namespace sluice::testing {

/// A check that owns what it asks and is told.
class HeldCheck final : public store::Check {
 public:
  explicit HeldCheck(std::vector<store::Charge> some) : held_charges_(std::move(some)) {
    held_decisions_.resize(held_charges_.size());
    charges = held_charges_;
    decisions = held_decisions_;
  }
  void complete() override { done = true; }

  bool done = false;

 private:
  std::vector<store::Charge> held_charges_;
  std::vector<Decision> held_decisions_;
};

inline Time real_time() { return SystemClock().now(); }

/// Starts a check; `done` is set at once when the store answers at once.
inline void start(store::Store& store, HeldCheck& check, Time now = real_time()) {
  check.done = false;
  if (store.check(check, now) == store::Progress::answered) check.done = true;
}

/// Runs the loop until `done()`, at most a minute; was it done? Not asked again after a yes.
template <typename Done>
bool run_until(boost::asio::io_context& io, Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    io.restart();
    io.run_one_for(std::chrono::milliseconds(20));
  }
  return true;
}

/// Throws std::runtime_error when no answer comes.
inline void ask(boost::asio::io_context& io, store::Store& store, HeldCheck& check, Time now = real_time()) {
  start(store, check, now);
  if (!run_until(io, [&] { return check.done; })) throw std::runtime_error("the store did not answer");
}

}  // namespace sluice::testing
