// A limit as the script is told it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "algorithm/compiled_limit.h"
#include "algorithm/sliding_window.h"
#include "algorithm/window.h"
#include "base/result.h"
#include "sluice/clock.h"
#include "sluice/limit.h"

namespace sluice::store::redis {

/// Immutable; any thread may use it. Layouts: lua/*.lua and docs/redis.md.
class RedisLimit {
 public:
  /// What its states are counted by, in µs: algorithms whose state the script answers as it is stored; for the log and
  /// the leases, of which it answers figures, nothing.
  using Twin = std::variant<std::monostate, algorithm::CompiledLimit, algorithm::SlidingWindow>;

  /// Fails when the limit is out of range or cannot be kept in Redis (see inexact_in_redis).
  [[nodiscard]] static Result<std::shared_ptr<const RedisLimit>> compile(const Limit& limit);

  [[nodiscard]] const Limit& numbers() const { return numbers_; }
  [[nodiscard]] const Twin& twin() const { return twin_; }
  /// What a state made with these numbers begins with: version, kind, and the numbers it depends on.
  [[nodiscard]] std::string_view head() const { return head_; }
  /// Set for calendar windows.
  [[nodiscard]] const algorithm::CalendarWindows* calendar() const { return calendar_.get(); }
  /// How much a key of this limit weighs in a call beyond others, as bytes: by what is moved, or the time it takes.
  [[nodiscard]] std::size_t weight() const;

  /// Appends the script's argument for this limit. `caller` is used for calendars only: it tells which windows to send.
  void append_argument(std::string& out, Time caller) const;

 private:
  RedisLimit(const Limit& limit, Twin twin, std::shared_ptr<const algorithm::CalendarWindows> calendar);

  Limit numbers_;
  Twin twin_;
  std::shared_ptr<const algorithm::CalendarWindows> calendar_;
  std::string argument_;  ///< what is the same in each call
  std::string head_;
};

}  // namespace sluice::store::redis
