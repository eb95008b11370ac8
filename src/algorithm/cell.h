// The state of any algorithm as it lies in a table.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "algorithm/concurrency.h"
#include "algorithm/fixed_window.h"
#include "algorithm/leaky_bucket.h"
#include "algorithm/sliding_log.h"
#include "algorithm/sliding_window.h"
#include "algorithm/ticks.h"
#include "algorithm/token_bucket.h"

namespace sluice::algorithm {

/// 16 bytes. Zeros are a key never seen. Moved about as plain data; but it may own memory, so whoever forgets one calls
/// CompiledLimit::clear() of the numbers that made it.
///
/// The second word is the time of the newest change and a bit that says where the rest is: in the first word, or
/// elsewhere, in an object that the first word points to. Elsewhere are states that grow (logs, leases, windows of many
/// slots) and those whose numbers need more bits than usual: buckets and debts of more than 2^64 parts of a token,
/// sliding windows of more than 2^32 tokens, windows from the first hit on that are long and let much through.
class Cell {
 public:
  Cell() = default;

  [[nodiscard]] bool is_fresh() const noexcept { return second_ == 0; }
  [[nodiscard]] bool is_elsewhere() const noexcept { return (second_ & 1U) != 0; }
  friend bool operator==(const Cell&, const Cell&) = default;

 private:
  template <typename A, typename StateRef, typename Function>
  friend auto on_cell(const A& algorithm, StateRef& cell, Function&& function);
  template <typename A>
  friend void write_back(const A& algorithm, Cell& cell, typename A::State& own);
  friend class CompiledLimit;
  friend class NarrowBucket;

  // Times lie within 2^62 of 0, so one of them is never 0 here.
  Cell(std::uint64_t word, std::int64_t last) noexcept : first_(word), second_(ticks_between(kBeforeAll, last) << 1U) {}
  template <typename Own>
  explicit Cell(std::unique_ptr<Own> own) noexcept : first_(std::bit_cast<std::uint64_t>(own.release())), second_(1) {}

  [[nodiscard]] std::uint64_t word() const noexcept { return first_; }
  [[nodiscard]] std::int64_t last() const noexcept {
    return static_cast<std::int64_t>((second_ >> 1U) + static_cast<std::uint64_t>(kBeforeAll));
  }
  template <typename Own>
  [[nodiscard]] Own& elsewhere() const noexcept {
    return *std::bit_cast<Own*>(first_);
  }

  static constexpr std::int64_t kBeforeAll = -kLatest - 1;
  std::uint64_t first_ = 0;
  std::uint64_t second_ = 0;
};
static_assert(std::is_trivially_copyable_v<Cell> && sizeof(Cell) == 16 && sizeof(void*) == 8);

/// Is a state plain data, all of it?
template <typename Own>
inline constexpr bool kIsFixed = std::is_trivially_copyable_v<Own>;

// How each state of fixed size fits a word beside its `last`: pack() has the word if it does, unpack() is the opposite.

[[nodiscard]] inline std::optional<std::uint64_t> pack(const TokenBucket& /*algorithm*/,
                                                       const TokenBucket::State& state) noexcept {
  return state.missing_high == 0 ? std::optional(state.missing_low) : std::nullopt;
}
[[nodiscard]] inline TokenBucket::State unpack(const TokenBucket& /*algorithm*/, std::uint64_t word,
                                               std::int64_t last) noexcept {
  return {.missing_low = word, .missing_high = 0, .last = last};
}

[[nodiscard]] inline std::optional<std::uint64_t> pack(const LeakyBucket& /*algorithm*/,
                                                       const LeakyBucket::State& state) noexcept {
  return state.missing_high == 0 ? std::optional(state.missing_low) : std::nullopt;
}
[[nodiscard]] inline LeakyBucket::State unpack(const LeakyBucket& /*algorithm*/, std::uint64_t word,
                                               std::int64_t last) noexcept {
  return {.missing_low = word, .missing_high = 0, .last = last};
}

[[nodiscard]] inline std::optional<std::uint64_t> pack(const FixedWindow& algorithm,
                                                       const FixedWindow::State& state) noexcept {
  if (algorithm.is_aligned()) return state.count;  // the window is known by its newest change
  const unsigned bits = algorithm.bits_of_offset();
  if (state.count >> (64U - bits) != 0) return std::nullopt;
  return state.count << bits | ticks_between(state.start, state.last);
}
[[nodiscard]] inline FixedWindow::State unpack(const FixedWindow& algorithm, std::uint64_t word,
                                               std::int64_t last) noexcept {
  if (algorithm.is_aligned()) return {.count = word, .start = algorithm.window_of(last).start, .last = last};
  const unsigned bits = algorithm.bits_of_offset();
  const std::uint64_t offset = word & ((std::uint64_t{1} << bits) - 1);
  return {.count = word >> bits, .start = last - static_cast<std::int64_t>(offset), .last = last};
}

[[nodiscard]] inline std::optional<std::uint64_t> pack(const SlidingWindow& /*algorithm*/,
                                                       const SlidingWindow::State& state) noexcept {
  if ((state.counts[0] | state.counts[1]) >> 32U != 0) return std::nullopt;
  return state.counts[1] << 32U | state.counts[0];
}
[[nodiscard]] inline SlidingWindow::State unpack(const SlidingWindow& /*algorithm*/, std::uint64_t word,
                                                 std::int64_t last) noexcept {
  return {.counts = {word & UINT32_MAX, word >> 32U}, .last = last};
}

/// When a state last changed.
template <typename Own>
[[nodiscard]] std::int64_t newest_change(const Own& own) noexcept {
  if constexpr (requires { own.last(); }) {
    return own.last();
  } else {
    return own.last;
  }
}

/// What malloc takes for so many bytes: eight more, and whole sixteens.
[[nodiscard]] constexpr std::size_t allocated(std::size_t bytes) noexcept {
  return bytes == 0 ? 0 : (bytes + 8 + 15) / 16 * 16;
}

/// Puts a state into a cell that held none, or held it in place.
template <typename A>
void write_back(const A& algorithm, Cell& cell, typename A::State& own) {
  using Own = typename A::State;
  if (newest_change(own) == kNeverSeen) {
    cell = Cell();
    return;
  }
  if constexpr (kIsFixed<Own>) {
    if (const auto word = pack(algorithm, own)) {
      cell = Cell(*word, own.last);
      return;
    }
  }
  cell = Cell(std::make_unique<Own>(std::move(own)));
}

/// Calls function(algorithm, state as the algorithm knows it) and writes the state back into the cell, if it is not
/// const. When memory is wanted and there is none, throws std::bad_alloc and leaves the cell as it was.
template <typename A, typename StateRef, typename Function>
auto on_cell(const A& algorithm, StateRef& cell, Function&& function) {
  using Own = typename A::State;
  constexpr bool is_const = std::is_const_v<StateRef>;
  if (cell.is_elsewhere()) {
    Own& own = cell.template elsewhere<Own>();
    if constexpr (is_const) {
      return function(algorithm, std::as_const(own));
    } else {
      return function(algorithm, own);
    }
  }
  Own own{};
  if constexpr (kIsFixed<Own>) {
    if (!cell.is_fresh()) own = unpack(algorithm, cell.word(), cell.last());
  }
  if constexpr (is_const) {
    return function(algorithm, std::as_const(own));
  } else {
    if constexpr (std::is_void_v<decltype(function(algorithm, own))>) {
      function(algorithm, own);
      write_back(algorithm, cell, own);
    } else {
      const auto answer = function(algorithm, own);
      write_back(algorithm, cell, own);
      return answer;
    }
  }
}

}  // namespace sluice::algorithm
