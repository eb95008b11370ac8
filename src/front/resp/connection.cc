#include "front/resp/connection.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
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

void shrink(std::string& text) {
  if (text.capacity() > kKeptCapacity) text = std::string();
}

}  // namespace

Connection::Connection(const Environment& environment, Host& host, std::uint64_t id, Time now)
    : environment_(environment), host_(host), client_(id), idle_since_(now.steady) {
  client_.is_trusted = environment.options.password.empty();
}

bool Connection::has_room() const {
  return !is_exclusive_ && steps_.size() < environment_.options.max_waiting &&
         output_.size() - sent_ < environment_.options.max_unsent;
}

bool Connection::wants_input() const { return !is_ending() && has_room(); }

void Connection::feed(std::string_view bytes, Time now) {
  idle_since_ = now.steady;
  if (input_.empty()) {
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
  proceed(now);
  close_input();
}

void Connection::proceed(Time now) {
  ended_.clear();
  if (!can_proceed()) return;
  const std::size_t used = run(input_, now);
  if (is_closing_ || used == 0) return;
  input_.erase(0, used);
  command_begun_ = now.steady;
  if (input_.empty()) shrink(input_);
}

std::size_t Connection::run(std::string_view input, Time now) {
  std::size_t used = 0;
  wanted_ = 0;
  while (!is_ending() && has_room() && used < input.size()) {
    const CommandReader::Status status = reader_.read(input.substr(used));
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
  }
  return used;
}

bool Connection::execute(std::span<const std::string_view> arguments, Time now) {
  const std::string_view name = arguments.front();
  if (!client_.is_trusted && !needs_no_password(arguments)) {
    error("NOAUTH give the password first: AUTH password");
    return true;
  }
  if (is_throttle(name)) return execute_throttle(arguments, now);
  if (arguments.size() > 1 && equal_ignoring_case(name, "reset")) return execute_reset(arguments, now);
  if (equal_ignoring_case(name, "sluice")) return execute_policy(arguments, now);
  execute_other(arguments);
  return true;
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
  if (throttle->gives_back && !steps_.empty()) return false;
  environment_.metrics.add(metrics::Counter::resp_commands);
  std::unique_ptr<ThrottleStep> step = take_step();
  const store::Progress progress = step->start(*throttle, now);
  if (progress == store::Progress::answered && steps_.empty()) {
    ReplyWriter reply(output_, client_.protocol);
    step->write(reply);
    spare_ = std::move(step);
    return true;
  }
  started(std::move(step), progress);
  is_exclusive_ = throttle->gives_back;
  return true;
}

bool Connection::execute_reset(std::span<const std::string_view> arguments, Time now) {
  if (arguments.size() > 2) {
    error("ERR wrong number of arguments for 'reset' command: expected RESET key, or RESET");
    return true;
  }
  if (!steps_.empty()) return false;
  environment_.metrics.add(metrics::Counter::resp_commands);
  std::unique_ptr<ThrottleStep> step = take_step();
  const store::Progress progress = step->start_reset(arguments[1], now);
  started(std::move(step), progress);
  is_exclusive_ = !steps_.empty();
  return true;
}

bool Connection::execute_policy(std::span<const std::string_view> arguments, Time now) {
  if (const auto problem = read_policy_command(arguments, policy_command_)) {
    error("ERR " + problem->message);
    return true;
  }
  const bool changes = policy_command_.verb.has_value();
  if (changes && !steps_.empty()) return false;
  environment_.metrics.add(metrics::Counter::resp_commands);
  auto step = std::make_unique<PolicyStep>(owner(), environment_.metrics);
  const store::Progress progress = step->start(policy_command_, environment_.policy.get(), environment_.store, now);
  started(std::move(step), progress);
  is_exclusive_ = changes && !steps_.empty();
  return true;
}

void Connection::execute_other(std::span<const std::string_view> arguments) {
  const std::string_view name = arguments.front();
  std::string text;
  switch (answer_client(arguments, client_, environment_.options, text)) {
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
  error("ERR unknown command " + quoted(name) + ": see COMMAND LIST");
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
}

bool Connection::finished() const { return is_ending() && steps_.empty() && output().empty(); }

std::int64_t Connection::deadline() const {
  const RespOptions& options = environment_.options;
  std::int64_t next = kNever;
  if (stalled_since_ != kNever) next = stalled_since_ + options.write_timeout.count();
  if (!steps_.empty() || !output().empty() || is_ending()) return next;
  if (!input_.empty()) return std::min(next, command_begun_ + options.command_timeout.count());
  if (options.idle_timeout.count() > 0) next = std::min(next, idle_since_ + options.idle_timeout.count());
  return next;
}

}  // namespace sluice::resp
