// A key's state as a call of the script found it, and what the requests of that call make of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "algorithm/compiled_limit.h"
#include "algorithm/sliding_window.h"
#include "algorithm/verdict.h"
#include "sluice/decision.h"
#include "store/redis/redis_limit.h"

namespace sluice::store::redis {

/// The twin of the script: the same arithmetic on the same state, so that figures need not be sent. Everything happens
/// at one time, the server's at the call. Of logs and leases the script answers figures, and for each charge that does
/// not fit the time that it waits for; so charges must be judged in the order and as often as the script judges them.
/// Reusable; not thread-safe.
class KeyState {
 public:
  /// What the script says a key held (null: nothing) at `now`. `trusted_lead`: as in the clock prelude, µs. False, with
  /// no meaning left: it is not a state of this limit. `limit` must outlive this.
  [[nodiscard]] bool read(const RedisLimit& limit, const std::optional<std::string_view>& value, std::int64_t now,
                          std::int64_t trusted_lead);

  /// Would `cost` fit?
  [[nodiscard]] algorithm::Verdict judge(std::uint64_t cost);
  /// Takes a cost that was just found to fit.
  void take(std::uint64_t cost);
  /// A charge that was just found not to fit.
  void miss(std::uint64_t cost);
  /// The decision on a charge with this verdict; figures as they are now.
  [[nodiscard]] Decision decision(algorithm::Verdict verdict) const;
  /// Concurrency: the id of the lease that was taken last.
  [[nodiscard]] std::uint64_t lease() const;
  /// False: the figures cannot be those of a state, though the script took them for it: counts that do not make up
  /// their sum, a wait that ends before it begins, or none for a charge that must wait.
  [[nodiscard]] bool is_sound() const { return is_sound_; }

 private:
  // Of a log or of leases: `newest` is the last time at which anything ends to count or is held; 0: nothing does.
  struct Figures {
    std::uint64_t used = 0;
    std::int64_t at = 0;
    std::int64_t newest = 0;
    std::uint64_t ids = 0;
    std::string_view waits;  // 7 bytes each; they lie in the reply, which outlives the judging
  };
  using Any = std::variant<algorithm::CompiledLimit::State, algorithm::SlidingWindow::SlottedState, Figures>;

  [[nodiscard]] bool read_bucket(std::string_view value);
  [[nodiscard]] bool read_window(std::string_view value);
  [[nodiscard]] bool read_slots(std::string_view value);
  [[nodiscard]] bool read_figures(std::string_view value);
  [[nodiscard]] algorithm::Verdict judge_figures(Figures& figures, std::uint64_t cost);
  [[nodiscard]] algorithm::View view() const;
  [[nodiscard]] std::int64_t changed_at() const;
  [[nodiscard]] std::int64_t span() const;

  const RedisLimit* limit_ = nullptr;
  std::int64_t now_ = 0;
  std::int64_t trusted_lead_ = 0;
  Any state_;
  bool is_sound_ = true;
};

}  // namespace sluice::store::redis
