// The RESP protocol of one connection, without a socket: bytes in, bytes out.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "front/resp/client_commands.h"
#include "front/resp/command_reader.h"
#include "front/resp/policy_command.h"
#include "front/resp/repeated_command.h"
#include "front/resp/resp_options.h"
#include "front/resp/step.h"
#include "front/resp/throttle_limits.h"
#include "front/resp/throttle_step.h"
#include "front/resp/transaction.h"
#include "front/session_host.h"
#include "metrics/metrics.h"
#include "policy/snapshot_holder.h"
#include "sluice/clock.h"
#include "store/store.h"

namespace sluice::resp {

/// What a connection works with; all of its io thread.
struct Environment {
  const RespOptions& options;
  policy::SnapshotReader& policy;
  store::Store& store;
  metrics::Shard& metrics;
  ThrottleLimits& limits;
  bool is_certified = false;  ///< the peer has shown a certificate that is trusted
};

/// Replies come in the order of their commands. Checks of one connection are at the store together; a command that
/// changes a counter otherwise (a refund, a reset) waits for those before it, and those behind it wait for it. Not
/// thread-safe.
///
/// The owner: feeds what the peer sends while wants_input(), sends output() whenever there is some and reports it by
/// sent(), and ends the connection once finished(). After each of these it looks at deadline(). The host is never told
/// of answers within a call of the connection.
class Connection final : private Step::Owner {
 public:
  using Host = front::SessionHost;

  Connection(const Environment& environment, Host& host, std::uint64_t id, Time now);

  /// What has come; all of it is taken.
  void feed(std::string_view bytes, Time now);
  /// The peer will send no more.
  void end_of_input(Time now);
  [[nodiscard]] bool wants_input() const;

  [[nodiscard]] std::string_view output() const { return std::string_view(output_).substr(sent_); }
  /// The first `size` bytes of the output have been taken; 0 when the peer takes none now. Goes on with commands that
  /// have come before and had no room.
  void sent(std::size_t size, Time now);
  /// All is said and sent. The owner shuts its sending side.
  [[nodiscard]] bool finished() const;
  /// finished(), and the peer may be sending still: closing at once could destroy the last reply on its way, so read on
  /// and drop until the peer ends or deadline() has passed.
  [[nodiscard]] bool lingers() const { return !has_input_ended_ && !was_quiet_; }
  /// Ends behind the next reply, or when the peer is quiet: the owner calls end() as soon as may_end() and nothing more
  /// has come, or must_end().
  void drain(Time now);
  /// Draining, and all that has been read is answered, by what is in output() at the latest.
  [[nodiscard]] bool may_end() const;
  /// may_end(), and the peer has had its time: it never stops asking.
  [[nodiscard]] bool must_end(Time now) const;
  /// What is in output() is the last.
  void end(Time now);

  /// The steady time at which expire() is to be called, if nothing happens before; INT64_MAX: never.
  [[nodiscard]] std::int64_t deadline() const;
  /// To be called at or after the deadline: the peer was too slow.
  void expire(Time now);
  /// The peer is beyond waiting for: end now, whatever is unsent.
  [[nodiscard]] bool aborted() const { return is_aborted_; }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// How long a peer may take to read the last words and close.
  static constexpr std::chrono::nanoseconds kLinger = std::chrono::seconds(2);

  /// Goes on with what has come before.
  void proceed(Time now);
  /// Is there a command that came before, and room for it?
  [[nodiscard]] bool can_proceed() const {
    return !is_ending() && has_room() && (transaction_.is_running() || (!input_.empty() && input_.size() >= wanted_));
  }
  /// Carries out whole commands as far as there is room; how many bytes they took.
  std::size_t run(std::string_view input, Time now);
  /// Goes on with what EXEC has to carry out; has all of it been?
  bool run_transaction(Time now);
  /// What came last is all that there will be: ends once there is room for what can be carried out and it has been.
  void end_after_input();
  /// These: false, not before those in flight are done.
  bool execute(std::span<const std::string_view> arguments, Time now);
  /// Keeps it for EXEC; false: it is to be carried out now.
  bool keep(std::span<const std::string_view> arguments);
  void execute_transaction(std::span<const std::string_view> arguments);
  bool execute_throttle(std::span<const std::string_view> arguments, Time now);
  bool carry_out(const Throttle& throttle, Time now);
  bool execute_reset(std::span<const std::string_view> arguments, Time now);
  bool execute_policy(std::span<const std::string_view> arguments, Time now);
  void execute_other(std::span<const std::string_view> arguments, Time now);
  /// May counters be changed otherwise than by a decision? False: that has been answered.
  [[nodiscard]] bool may_change(Time now);
  void started(std::unique_ptr<Step>&& step, store::Progress progress);
  Step::Owner& owner() { return *this; }
  std::unique_ptr<ThrottleStep> take_step();
  /// Writes an error in its turn.
  void error(const std::string& text);
  /// Replies are written behind those that are still to come.
  void queue_text(std::string text);
  void close_input();
  void step_done() override;
  void flush_done();
  [[nodiscard]] bool has_room() const;
  [[nodiscard]] bool has_pending() const;
  [[nodiscard]] bool is_ending() const { return is_closing_; }

  const Environment environment_;
  Host& host_;
  Client client_;
  CommandReader reader_;
  RepeatedCommand repeated_;
  PolicyCommand policy_command_;
  Transaction transaction_;
  std::string input_;       ///< what is not yet carried out
  std::size_t wanted_ = 0;  ///< bytes of it below which reading again is of no use
  std::string output_;
  std::size_t sent_ = 0;
  std::deque<std::unique_ptr<Step>> steps_;   ///< pending, or done behind a pending one
  std::vector<std::unique_ptr<Step>> ended_;  ///< one of them may be what called
  std::unique_ptr<ThrottleStep> spare_;
  bool is_exclusive_ = false;  ///< nothing else until the steps are done
  bool is_closing_ = false;    ///< no more commands
  bool may_end_ = false;       ///< draining, and something was asked since it began or before
  bool has_input_ended_ = false;
  bool was_quiet_ = false;  ///< at its end, so there is no last reply on its way
  bool is_aborted_ = false;
  std::int64_t command_begun_ = 0;  ///< steady ns; of the command in input_
  std::int64_t idle_since_ = 0;
  std::int64_t drained_since_ = kNever;  ///< when draining began
  std::int64_t stalled_since_ = kNever;  ///< since when the peer has taken no byte of the output
  std::int64_t ending_since_ = kNever;   ///< when there began to be no more commands
};

}  // namespace sluice::resp
