#include "front/resp/transaction.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "front/resp/client_commands.h"
#include "front/resp/command_table.h"
#include "front/resp/policy_command.h"
#include "front/resp/reply_writer.h"

namespace sluice::resp {
namespace {

constexpr std::array<std::string_view, 5> kWords = {"multi", "exec", "discard", "watch", "unwatch"};

bool is(std::string_view a, std::string_view b) { return equal_ignoring_case(a, b); }

std::string error(std::string_view text) {
  std::string reply;
  ReplyWriter(reply, 2).error(text);
  return reply;
}

}  // namespace

bool Transaction::is_word(std::string_view name) {
  return std::ranges::any_of(kWords, [&](std::string_view one) { return is(name, one); });
}

std::string Transaction::answer(std::span<const std::string_view> arguments) {
  const std::string_view name = arguments.front();
  if (is(name, "watch")) {
    return error(is_open_ ? "ERR WATCH inside MULTI is not allowed"
                          : "ERR there is no WATCH: no key here has a value that a client writes");
  }
  if (arguments.size() != 1) {
    spoil();
    return error(wrong_arity(name));
  }
  if (is(name, "unwatch")) return "+OK\r\n";
  if (is(name, "multi")) {
    if (is_open_) return error("ERR MULTI calls can not be nested");
    forget();
    is_open_ = true;
    return "+OK\r\n";
  }
  if (!is_open_) return error(is(name, "exec") ? "ERR EXEC without MULTI" : "ERR DISCARD without MULTI");
  if (is(name, "exec")) return execute();
  forget();
  return "+OK\r\n";
}

std::string Transaction::execute() {
  if (is_spoilt_) {
    forget();
    return error("EXECABORT Transaction discarded because of previous errors.");
  }
  std::string reply;
  ReplyWriter(reply, 2).array(commands_);
  is_open_ = false;
  is_running_ = commands_ > 0;
  return reply;
}

bool Transaction::keeps(std::span<const std::string_view> arguments) {
  const std::string_view name = arguments.front();
  if (is(name, "unwatch")) return true;
  const bool is_restart = is(name, "reset") && arguments.size() == 1;
  return !is_word(name) && !is(name, "quit") && !is_restart;
}

std::optional<std::string> Transaction::add(std::span<const std::string_view> arguments, std::string_view text) {
  const CommandInfo* command = find_command(arguments.front());
  std::optional<std::string> problem;
  if (command == nullptr || !command->takes(arguments.size())) {
    problem = wrong_arity(arguments.front());
  } else if (auto refusal = refuse_subcommand(arguments)) {
    problem = std::move(refusal);
  } else if (const auto error = is(arguments.front(), "sluice") ? refuse_policy_words(arguments) : std::nullopt) {
    problem = "ERR " + error->message;
  } else if (commands_ == kMostCommands || text_.size() + text.size() > kMostBytes) {
    problem = "ERR too much between MULTI and EXEC: at most " + std::to_string(kMostCommands) + " commands of " +
              std::to_string(kMostBytes) + " bytes in all";
  }
  if (problem) {
    spoil();
    return problem;
  }
  text_ += text;
  ++commands_;
  return std::nullopt;
}

void Transaction::ran(std::size_t size) {
  done_ += size;
  if (done_ == text_.size()) forget();
}

}  // namespace sluice::resp
