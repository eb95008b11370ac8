#include "front/resp/throttle.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "base/ascii.h"
#include "base/seconds.h"
#include "store/charge.h"

namespace sluice::resp {
namespace {

constexpr std::int64_t kMaxSeconds = std::chrono::duration_cast<std::chrono::seconds>(kMaxPeriod).count();

struct Command {
  std::string_view name;
  std::string_view usage;
  Dialect dialect;
  std::size_t least;
  std::size_t most;
};

constexpr std::array<Command, 4> kCommands = {{
    {"cl.throttle", "CL.THROTTLE key max_burst count period [quantity]", Dialect::cell, 5, 6},
    {"throttle", "THROTTLE key max_burst count period [quantity]", Dialect::throttlecrab, 5, 6},
    {"gcra", "GCRA key max_burst tokens period [TOKENS n]", Dialect::gcra, 5, 7},
    {"peek", "PEEK key max_burst count period", Dialect::cell, 5, 5},
}};

const Command* find(std::string_view name) {
  for (const Command& command : kCommands) {
    if (equal_ignoring_case(command.name, name)) return &command;
  }
  return nullptr;
}

Result<std::int64_t> read_within(std::string_view text, std::string_view what, std::int64_t least, std::int64_t most) {
  const auto number = read_integer(text, what);
  if (!number) return number;
  if (*number >= least && *number <= most) return number;
  return Error{std::string(what) + " must be " + std::to_string(least) + " to " + std::to_string(most) + ", is " +
               std::to_string(*number)};
}

Result<std::chrono::nanoseconds> read_seconds(std::string_view text) {
  const auto period = parse_seconds(text, 6, kMaxSeconds);
  if (period && period->count() > 0) return *period;
  return Error{"period must be 0.000001 to " + std::to_string(kMaxSeconds) +
               " seconds, with at most six decimals, is " + quoted(text)};
}

Error wrong_arity(const Command& command) {
  return Error{"wrong number of arguments for '" + std::string(command.name) + "' command: expected " +
               std::string(command.usage)};
}

// The arguments behind the period.
std::optional<Error> read_quantity(std::span<const std::string_view> rest, const Command& command, Throttle& throttle) {
  if (command.name == "peek") throttle.cost = 0;
  if (rest.empty()) return std::nullopt;
  if (command.dialect == Dialect::gcra) {
    if (rest.size() != 2) return wrong_arity(command);
    if (!equal_ignoring_case(rest.front(), "TOKENS")) {
      return Error{"expected TOKENS, found " + quoted(rest.front())};
    }
  }
  const bool may_give_back = command.dialect == Dialect::cell;
  const auto quantity =
      read_within(rest.back(), "quantity", may_give_back ? std::numeric_limits<std::int64_t>::min() : 0,
                  std::numeric_limits<std::int64_t>::max());
  if (!quantity) return quantity.error();
  throttle.gives_back = *quantity < 0;
  const auto cost =
      throttle.gives_back ? 0 - static_cast<std::uint64_t>(*quantity) : static_cast<std::uint64_t>(*quantity);
  throttle.cost = std::min(cost, throttle.gives_back ? kMaxTokens : store::kNeverFits);
  return std::nullopt;
}

std::int64_t seconds(const Wait& wait) { return wait.is_never() ? -1 : wait.ceil_seconds(); }

}  // namespace

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 32;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) out.push_back(c >= ' ' && c < 0x7f ? c : '.');
  out.append(text.size() > kShown ? "...'" : "'");
  return out;
}

Result<std::int64_t> read_integer(std::string_view text, std::string_view what) {
  const std::string_view digits = text.starts_with('+') && text.size() > 1 && text[1] != '-' ? text.substr(1) : text;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc{} && end == digits.data() + digits.size()) return number;
  return Error{std::string(what) + " must be a whole number of 64 bits, is " + quoted(text)};
}

bool is_throttle(std::string_view name) { return find(name) != nullptr; }

Result<Throttle> read_throttle(std::span<const std::string_view> arguments) {
  const Command& command = *find(arguments.front());
  if (arguments.size() < command.least || arguments.size() > command.most) return wrong_arity(command);
  Throttle throttle;
  throttle.dialect = command.dialect;
  throttle.key = arguments[1];

  const bool adds_one = command.dialect != Dialect::throttlecrab;
  const auto max_burst =
      read_within(arguments[2], "max_burst", adds_one ? 0 : 1, std::numeric_limits<std::int64_t>::max());
  if (!max_burst) return max_burst.error();
  throttle.bucket.burst = std::min(static_cast<std::uint64_t>(*max_burst) + (adds_one ? 1 : 0), kMaxTokens);

  const auto count = read_within(arguments[3], command.dialect == Dialect::gcra ? "tokens" : "count", 1,
                                 static_cast<std::int64_t>(kMaxRate));
  if (!count) return count.error();
  throttle.bucket.rate = static_cast<std::uint64_t>(*count);

  if (command.dialect == Dialect::gcra) {
    const auto period = read_seconds(arguments[4]);
    if (!period) return period.error();
    throttle.bucket.period = *period;
  } else {
    const auto period = read_within(arguments[4], "period", 1, kMaxSeconds);
    if (!period) return period.error();
    throttle.bucket.period = std::chrono::seconds(*period);
  }
  if (auto error = read_quantity(arguments.subspan(5), command, throttle)) return *std::move(error);
  return throttle;
}

void write_decision(Dialect dialect, const Decision& decision, ReplyWriter& reply) {
  const auto limit = static_cast<std::int64_t>(decision.limit);
  const auto remaining = static_cast<std::int64_t>(decision.remaining);
  const std::int64_t reset_after = seconds(decision.reset_after);
  if (dialect == Dialect::throttlecrab) {
    const std::int64_t retry_after = decision.allowed ? 0 : seconds(decision.retry_after);
    reply.integers(std::array<std::int64_t, 5>{decision.allowed ? 1 : 0, limit, remaining, reset_after, retry_after});
    return;
  }
  const std::int64_t retry_after = decision.allowed ? -1 : seconds(decision.retry_after);
  reply.integers(std::array<std::int64_t, 5>{decision.allowed ? 0 : 1, limit, remaining, retry_after, reset_after});
}

}  // namespace sluice::resp
