// Which messages of a channel of RabbitMQ may be acknowledged, and how with the fewest words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

namespace sluice::queue::rabbit {

/// The messages of one connection in the order of their numbers. Those before the first that is held are acknowledged
/// by one frame, which the server carries out as one change of a lane; one alone costs it a search among all that are
/// not acknowledged, and a change of its own. So what is finished waits a millisecond for others, and what stands
/// behind a held one half a second for that. All times are steady ns. Pure; not thread-safe.
class AckLedger {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// `most_waiting`: finished messages of one lane that may wait, from 1.
  AckLedger(std::size_t lanes, std::size_t most_waiting);

  /// A message has come: its tag, unlike all others'. The server's numbers rise.
  std::uint64_t add(std::uint64_t number, std::size_t lane);
  /// It was taken over this connection, and is not finished.
  [[nodiscard]] bool holds(std::uint64_t tag) const;
  /// False: it is not held.
  bool finish(std::uint64_t tag);

  struct Due {
    std::uint64_t all_up_to = 0;  ///< a number; 0: none
    std::vector<std::uint64_t> alone;
  };
  /// What is to be told by now: everything when a lane has as many as may wait, or at the end, which is kNever.
  [[nodiscard]] Due take(std::int64_t now);
  /// When take() will have something, if nothing else happens; may be in the past.
  [[nodiscard]] std::int64_t due() const;
  /// The connection is gone, and with it all that is held.
  void clear();

 private:
  enum class State : std::uint8_t { held, finished, told };
  struct Entry {
    std::uint32_t lane = 0;
    State state = State::held;
  };

  [[nodiscard]] const Entry* find(std::uint64_t tag) const;
  void take_first(Due& due);
  void take_others(Due& due);

  const std::size_t most_waiting_;
  std::deque<Entry> entries_;
  std::uint64_t first_ = 1;   ///< the number of the first entry
  std::uint64_t offset_ = 0;  ///< a tag is its number and this
  std::size_t waiting_ = 0;   ///< finished ones
  std::vector<std::size_t> waiting_of_;
  bool is_full_ = false;           ///< a lane has as many as may wait
  bool is_fresh_ = false;          ///< something was finished since take()
  std::int64_t taken_at_ = 0;      ///< the last time that something was
  std::int64_t stands_since_ = 0;  ///< that some stand behind a held one; 0: none do
};

}  // namespace sluice::queue::rabbit
