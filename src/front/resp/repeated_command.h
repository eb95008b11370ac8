// The same command once more, of this key or another.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "front/resp/throttle.h"

namespace sluice::resp {

/// Services send one command over and over, and only the key is another. One whose bytes are those of the last one but
/// for the key says the same of another key, so nothing of it is read but that. Not thread-safe.
/// Cost: two comparisons of some ten bytes each, where CommandReader and read_throttle() go through all of them.
class RepeatedCommand {
 public:
  /// A throttle that was read from `text`: an array of bulk strings (what else it may be is not remembered), whole.
  /// `throttle.key` is a view into it.
  void remember(std::string_view text, const Throttle& throttle);
  /// Does `input` begin with such a command? Then throttle() and used() are of it.
  [[nodiscard]] bool matches(std::string_view input);
  /// Its key is a view into the input.
  [[nodiscard]] const Throttle& throttle() const { return throttle_; }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  static constexpr std::size_t kMostBytes = 128;  ///< besides the key; what is longer is not remembered

  std::string before_;  ///< up to the '$' of the key; empty: nothing is remembered
  std::string behind_;  ///< from the line end behind the key
  Throttle throttle_;
  std::size_t used_ = 0;
};

}  // namespace sluice::resp
