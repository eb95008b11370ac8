#include "front/resp/connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "base/drain.h"
#include "front/resp/command_table.h"
#include "front/resp/policy_step.h"

namespace sluice::resp {
namespace {

constexpr std::size_t kKeptCapacity = std::size_t{16} * 1024;

/// A reply that was ready at once, behind others that are not.
class TextStep final : public Step {
 public:
  explicit TextStep(std::string text) : text_(std::move(text)) { is_done = true; }
  void write(ReplyWriter& reply) const override { reply.verbatim(text_); }

 private:
  std::string text_;
};

// A browser that was told to send HTTP here must not reach a counter by the lines of its body.
bool is_http(std::string_view name) { return equal_ignoring_case(name, "post") || equal_ignoring_case(name, "host:"); }

bool is_script(std::string_view name) {
  constexpr std::array<std::string_view, 8> names = {"eval",  "evalsha",  "eval_ro", "evalsha_ro",
                                                     "fcall", "fcall_ro", "script",  "function"};
  return std::ranges::any_of(names, [&](std::string_view one) { return equal_ignoring_case(name, one); });
}

void shrink(std::string& text) {
  if (text.capacity() > kKeptCapacity) text = std::string();
}

}  // namespace

Connection::Connection(const Environment& environment, Host& host, std::uint64_t id, Time now)
    : environment_(environment),
      host_(host),
      client_(id, Rights(environment.options, environment.is_certified)),
      idle_since_(now.steady) {}

bool Connection::has_room() const {
  return !is_exclusive_ && steps_.size() < environment_.options.max_waiting &&
         output_.size() - sent_ < environment_.options.max_unsent;
}

bool Connection::wants_input() const {
  if (finished()) return lingers();
  return !is_ending() && !has_input_ended_ && has_room();
}

void Connection::feed(std::string_view bytes, Time now) {
  if (is_ending()) return;
  idle_since_ = now.steady;
  may_end_ = drained_since_ != kNever;
  if (input_.empty() && !transaction_.is_running()) {
    const std::size_t used = run(bytes, now);
    if (is_closing_) return;
    input_.assign(bytes.substr(used));
    if (!input_.empty()) command_begun_ = now.steady;
    return;
  }
  input_.append(bytes);
  proceed(now);
}

void Connection::end_of_input(Time now) {
  has_input_ended_ = true;
  proceed(now);
  end_after_input();
}

void Connection::end_after_input() {
  if (has_input_ended_ && has_room() && !transaction_.is_running()) close_input();
}

void Connection::drain(Time now) {
  drained_since_ = now.steady;
  may_end_ = has_pending() || !output().empty();
}

bool Connection::has_pending() const { return !steps_.empty() || !input_.empty() || transaction_.is_running(); }

bool Connection::may_end() const { return may_end_ && !is_closing_ && !has_pending() && !transaction_.is_open(); }

bool Connection::must_end(Time now) const { return may_end() && now.steady - drained_since_ >= kDrainGrace.count(); }

void Connection::end(Time now) {
  close_input();
  ending_since_ = now.steady;
}

void Connection::expire(Time now) {
  if (now.steady < deadline()) return;
  if (drained_since_ != kNever && !is_closing_ && !has_pending() && output().empty()) {
    was_quiet_ = true;
    end(now);
  } else {
    is_aborted_ = true;
  }
}

void Connection::proceed(Time now) {
  ended_.clear();
  if (!can_proceed() || (transaction_.is_running() && !run_transaction(now))) return;
  const std::size_t used = run(input_, now);
  if (is_closing_ || used == 0) return;
  input_.erase(0, used);
  command_begun_ = now.steady;
  if (input_.empty()) shrink(input_);
}

std::size_t Connection::run(std::string_view input, Time now) {
  const bool is_in_transaction = transaction_.is_running();
  std::size_t used = 0;
  wanted_ = 0;
  while (!is_ending() && has_room() && used < input.size()) {
    const std::string_view rest = input.substr(used);
    if (!transaction_.is_open() && repeated_.matches(rest) && client_.rights.may_speak(now.steady)) {
      if (!carry_out(repeated_.throttle(), now)) {
        is_exclusive_ = true;
        break;
      }
      used += repeated_.used();
      continue;
    }
    const CommandReader::Status status = reader_.read(rest);
    if (status == CommandReader::Status::more) {
      wanted_ = reader_.wanted();
      break;
    }
    if (status == CommandReader::Status::broken) {
      environment_.metrics.add(metrics::Counter::protocol_errors);
      error("ERR " + std::string(reader_.error()));
      close_input();
      break;
    }
    if (!reader_.arguments().empty() && !execute(reader_.arguments(), now)) {
      is_exclusive_ = true;
      break;
    }
    used += reader_.used();
    if (transaction_.is_running() && !is_in_transaction && !run_transaction(now)) break;
  }
  return used;
}

bool Connection::run_transaction(Time now) {
  transaction_.ran(run(transaction_.rest(), now));
  return !transaction_.is_running();
}

bool Connection::execute(std::span<const std::string_view> arguments, Time now) {
  const std::string_view name = arguments.front();
  if (!client_.rights.may_speak(now.steady) && !needs_no_password(arguments)) {
    transaction_.spoil();
    error("NOAUTH give the password first: AUTH password");
    return true;
  }
  if (transaction_.is_open() && keep(arguments)) return true;
  if (is_throttle(name)) return execute_throttle(arguments, now);
  if (arguments.size() > 1 && equal_ignoring_case(name, "reset")) return execute_reset(arguments, now);
  if (equal_ignoring_case(name, "sluice")) return execute_policy(arguments, now);
  execute_other(arguments, now);
  return true;
}

bool Connection::keep(std::span<const std::string_view> arguments) {
  if (!Transaction::keeps(arguments)) return false;
  if (find_command(arguments.front()) == nullptr) {
    transaction_.spoil();
    return false;
  }
  if (const auto problem = transaction_.add(arguments, reader_.text())) {
    error(*problem);
  } else {
    queue_text("+QUEUED\r\n");
  }
  return true;
}

void Connection::execute_transaction(std::span<const std::string_view> arguments) {
  std::string reply = transaction_.answer(arguments);
  environment_.metrics.add(metrics::Counter::resp_commands);
  if (reply.starts_with('-')) environment_.metrics.add(metrics::Counter::resp_errors);
  queue_text(std::move(reply));
}

bool Connection::may_change(Time now) {
  const auto refusal = client_.rights.refuse_change(now.steady);
  if (refusal) error(std::string(*refusal));
  return !refusal;
}

std::unique_ptr<ThrottleStep> Connection::take_step() {
  if (spare_ != nullptr) return std::move(spare_);
  return std::make_unique<ThrottleStep>(owner(), environment_.limits, environment_.store, environment_.metrics);
}

bool Connection::execute_throttle(std::span<const std::string_view> arguments, Time now) {
  const auto throttle = read_throttle(arguments);
  if (!throttle) {
    error("ERR " + throttle.error().message);
    return true;
  }
  repeated_.remember(reader_.text(), *throttle);
  return carry_out(*throttle, now);
}

bool Connection::carry_out(const Throttle& throttle, Time now) {
  if (throttle.gives_back && !may_change(now)) return true;
  if (throttle.gives_back && !steps_.empty()) return false;
  environment_.metrics.add(metrics::Counter::resp_commands);
  std::unique_ptr<ThrottleStep> step = take_step();
  const store::Progress progress = step->start(throttle, now);
  if (progress == store::Progress::answered && steps_.empty()) {
    ReplyWriter reply(output_, client_.protocol);
    step->write(reply);
    spare_ = std::move(step);
    return true;
  }
  started(std::move(step), progress);
  is_exclusive_ = throttle.gives_back;
  return true;
}

bool Connection::execute_reset(std::span<const std::string_view> arguments, Time now) {
  if (arguments.size() > 2) {
    error("ERR wrong number of arguments for 'reset' command: expected RESET key, or RESET");
    return true;
  }
  if (!may_change(now)) return true;
  if (!steps_.empty()) return false;
  environment_.metrics.add(metrics::Counter::resp_commands);
  std::unique_ptr<ThrottleStep> step = take_step();
  const store::Progress progress = step->start_reset(arguments[1], now);
  started(std::move(step), progress);
  is_exclusive_ = !steps_.empty();
  return true;
}

bool Connection::execute_policy(std::span<const std::string_view> arguments, Time now) {
  const bool changes = changes_counters(arguments);
  // Who may not do it hears nothing of what was sent.
  if (changes && !may_change(now)) return true;
  if (const auto problem = read_policy_command(arguments, policy_command_)) {
    error("ERR " + problem->message);
    return true;
  }
  if (changes && !steps_.empty()) return false;
  environment_.metrics.add(metrics::Counter::resp_commands);
  auto step = std::make_unique<PolicyStep>(owner(), environment_.metrics);
  const store::Progress progress = step->start(policy_command_, environment_.policy.get(), environment_.store, now);
  started(std::move(step), progress);
  is_exclusive_ = changes && !steps_.empty();
  return true;
}

void Connection::execute_other(std::span<const std::string_view> arguments, Time now) {
  const std::string_view name = arguments.front();
  if (Transaction::is_word(name)) {
    execute_transaction(arguments);
    return;
  }
  if (equal_ignoring_case(name, "reset")) transaction_.forget();
  std::string text;
  switch (answer_client(arguments, client_, now.steady, text)) {
    case Outcome::answered:
      environment_.metrics.add(metrics::Counter::resp_commands);
      queue_text(std::move(text));
      return;
    case Outcome::quit:
      environment_.metrics.add(metrics::Counter::resp_commands);
      queue_text(std::move(text));
      close_input();
      return;
    case Outcome::unknown:
      break;
  }
  error("ERR unknown command " + quoted(name) +
        (is_script(name)
             ? ": there are no scripts here; send its commands themselves, pipelined or between MULTI and EXEC"
             : ": see COMMAND LIST"));
  if (is_http(name)) close_input();
}

void Connection::started(std::unique_ptr<Step>&& step, store::Progress progress) {
  step->protocol = client_.protocol;
  steps_.push_back(std::move(step));
  if (progress == store::Progress::answered) flush_done();
}

void Connection::error(const std::string& text) {
  environment_.metrics.add(metrics::Counter::resp_commands);
  environment_.metrics.add(metrics::Counter::resp_errors);
  std::string reply;
  ReplyWriter(reply, client_.protocol).error(text);
  queue_text(std::move(reply));
}

void Connection::queue_text(std::string text) {
  if (steps_.empty()) {
    output_ += text;
  } else {
    steps_.push_back(std::make_unique<TextStep>(std::move(text)));
  }
}

void Connection::close_input() {
  is_closing_ = true;
  input_.clear();
  wanted_ = 0;
}

void Connection::step_done() {
  flush_done();
  host_.resumed();
}

void Connection::flush_done() {
  while (!steps_.empty() && steps_.front()->is_done) {
    ReplyWriter reply(output_, steps_.front()->protocol);
    steps_.front()->write(reply);
    ended_.push_back(std::move(steps_.front()));
    steps_.pop_front();
  }
  if (steps_.empty()) is_exclusive_ = false;
}

void Connection::sent(std::size_t size, Time now) {
  sent_ += size;
  stalled_since_ = now.steady;
  if (sent_ < output_.size()) return;
  stalled_since_ = kNever;
  output_.clear();
  sent_ = 0;
  shrink(output_);
  proceed(now);
  end_after_input();
  if (is_ending()) ending_since_ = now.steady;
}

bool Connection::finished() const { return is_ending() && steps_.empty() && output().empty(); }

std::int64_t Connection::deadline() const {
  const RespOptions& options = environment_.options;
  if (finished() && ending_since_ != kNever) return ending_since_ + kLinger.count();
  std::int64_t next = kNever;
  if (stalled_since_ != kNever) next = stalled_since_ + options.write_timeout.count();
  if (!steps_.empty() || !output().empty() || is_ending()) return next;
  if (!input_.empty()) return std::min(next, command_begun_ + options.command_timeout.count());
  if (drained_since_ != kNever) return std::min(next, idle_since_ + kDrainGrace.count());
  if (options.idle_timeout.count() > 0) next = std::min(next, idle_since_ + options.idle_timeout.count());
  return next;
}

}  // namespace sluice::resp
