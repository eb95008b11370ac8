// A limit as the script is told it, and its state as the script leaves it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "algorithm/compiled_limit.h"
#include "algorithm/window.h"
#include "base/result.h"
#include "sluice/clock.h"
#include "sluice/limit.h"

namespace sluice::store::redis {

/// Immutable; any thread may use it. Layouts: lua/token_bucket.lua, lua/fixed_window.lua and docs/redis.md.
class RedisLimit {
 public:
  using State = algorithm::CompiledLimit::State;

  /// Fails when the limit is out of range or cannot be kept in Redis (see inexact_in_redis).
  [[nodiscard]] static Result<std::shared_ptr<const RedisLimit>> compile(const Limit& limit);

  [[nodiscard]] const Limit& numbers() const { return numbers_; }
  /// The twin of the script's arithmetic, in µs.
  [[nodiscard]] const algorithm::CompiledLimit& compiled() const { return compiled_; }

  /// Appends the script's argument for this limit. `caller` is used for calendars only: it tells which windows to send.
  void append_argument(std::string& out, Time caller) const;

  /// The state that the script starts from when it finds `value` (null: no key) at `server_now`: converted to these
  /// numbers, a time ahead of the server's cut. Nothing when `value` is not a state. `trusted_lead`: as in the clock
  /// prelude, µs.
  [[nodiscard]] std::optional<State> read_state(const std::optional<std::string_view>& value, std::int64_t server_now,
                                                std::int64_t trusted_lead) const;

 private:
  RedisLimit(const Limit& limit, algorithm::CompiledLimit compiled,
             std::shared_ptr<const algorithm::CalendarWindows> calendar);
  [[nodiscard]] std::optional<State> read_bucket(std::string_view value, std::int64_t server_now,
                                                 std::int64_t trusted_lead) const;
  [[nodiscard]] std::optional<State> read_window(std::string_view value, std::int64_t server_now,
                                                 std::int64_t trusted_lead) const;
  [[nodiscard]] std::int64_t window_start(std::int64_t at) const;
  [[nodiscard]] std::int64_t window_length(std::int64_t at) const;

  Limit numbers_;
  algorithm::CompiledLimit compiled_;
  std::shared_ptr<const algorithm::CalendarWindows> calendar_;
  std::string argument_;  ///< what is the same in each call
  std::string head_;      ///< what a state made with these numbers begins with
};

}  // namespace sluice::store::redis
