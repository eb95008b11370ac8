// The RESP protocol of one connection, without a socket: bytes in, bytes out.
#pragma once

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
#include "front/resp/resp_options.h"
#include "front/resp/step.h"
#include "front/resp/throttle_limits.h"
#include "front/resp/throttle_step.h"
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
  const bool& draining;  ///< no new commands; what is in flight is finished
};

/// Replies come in the order of their commands. Checks of one connection are at the store together; a command that
/// changes a counter otherwise (a refund, a reset) waits for those before it, and those behind it wait for it. Not
/// thread-safe.
class Connection final : private Step::Owner {
 public:
  class Host {
   public:
    /// Pending commands have been answered: there may be output, and room for commands that have come before. May be
    /// called often; never within a call of the connection.
    virtual void resumed() = 0;

   protected:
    ~Host() = default;
  };

  Connection(const Environment& environment, Host& host, std::uint64_t id, Time now);

  /// What has come; all of it is taken. Precondition: wants_input().
  void feed(std::string_view bytes, Time now);
  /// The peer will send no more.
  void end_of_input(Time now);
  /// Goes on with what has come before, when Host::resumed was called or output was sent.
  void proceed(Time now);
  [[nodiscard]] bool wants_input() const;
  /// Is there a command that came before, and room for it? Then proceed().
  [[nodiscard]] bool can_proceed() const { return wants_input() && !input_.empty() && input_.size() >= wanted_; }

  [[nodiscard]] std::string_view output() const { return std::string_view(output_).substr(sent_); }
  /// The first `size` bytes of the output have been taken; 0 when the peer takes none now.
  void sent(std::size_t size, Time now);
  /// All is said: to be closed once the output is sent, which is true then.
  [[nodiscard]] bool finished() const;

  /// The steady time at which expire() is to be called, if nothing happens before.
  [[nodiscard]] std::int64_t deadline() const;
  /// The peer was too slow if it is past the deadline: then true, and the connection is to be closed at once.
  [[nodiscard]] bool is_expired(Time now) const { return now.steady >= deadline(); }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// Carries out whole commands as far as there is room; how many bytes they took.
  std::size_t run(std::string_view input, Time now);
  /// False: not before those in flight are done.
  bool execute(std::span<const std::string_view> arguments, Time now);
  bool execute_throttle(std::span<const std::string_view> arguments, Time now);
  bool execute_reset(std::span<const std::string_view> arguments, Time now);
  bool execute_policy(std::span<const std::string_view> arguments, Time now);
  void execute_other(std::span<const std::string_view> arguments);
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
  [[nodiscard]] bool is_ending() const { return is_closing_ || environment_.draining; }

  const Environment environment_;
  Host& host_;
  Client client_;
  CommandReader reader_;
  PolicyCommand policy_command_;
  std::string input_;       ///< what is not yet carried out
  std::size_t wanted_ = 0;  ///< bytes of it below which reading again is of no use
  std::string output_;
  std::size_t sent_ = 0;
  std::deque<std::unique_ptr<Step>> steps_;   ///< pending, or done behind a pending one
  std::vector<std::unique_ptr<Step>> ended_;  ///< one of them may be what called
  std::unique_ptr<ThrottleStep> spare_;
  bool is_exclusive_ = false;       ///< nothing else until the steps are done
  bool is_closing_ = false;         ///< no more commands
  std::int64_t command_begun_ = 0;  ///< steady ns; of the command in input_
  std::int64_t idle_since_ = 0;
  std::int64_t stalled_since_ = kNever;  ///< since when the peer has taken no byte of the output
};

}  // namespace sluice::resp
