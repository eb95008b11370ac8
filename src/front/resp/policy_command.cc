#include "front/resp/policy_command.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "base/ascii.h"
#include "front/resp/throttle.h"
#include "sluice/limit.h"
#include "store/ban_store.h"

namespace sluice::resp {
namespace {

using Kind = limiter::CounterVerb::Kind;

struct Verb {
  std::string_view name;
  std::optional<Kind> kind;
  std::size_t numbers;  ///< between the domain and the keys
};

constexpr std::array<Verb, 9> kVerbs = {{
    {"check", std::nullopt, 1},
    {"peek", std::nullopt, 1},
    {"acquire", std::nullopt, 1},
    {"reserve", std::nullopt, 2},
    {"refund", Kind::refund, 1},
    {"settle", Kind::settle, 2},
    {"penalize", Kind::penalize, 1},
    {"ban", Kind::ban, 1},
    {"reset", Kind::reset, 0},
}};

/// Those on what was acquired or reserved.
struct HoldVerb {
  std::string_view name;
  limiter::Hold::Kind kind;
  std::size_t numbers;
};
constexpr std::array<HoldVerb, 3> kHoldVerbs = {{
    {"release", limiter::Hold::Kind::lease, 0},
    {"commit", limiter::Hold::Kind::reservation, 1},
    {"cancel", limiter::Hold::Kind::reservation, 0},
}};

constexpr std::string_view kUsage =
    "expected SLUICE CHECK|PEEK|ACQUIRE|REFUND|PENALIZE domain cost key value ..., SLUICE RESERVE domain cost "
    "milliseconds key value ..., SLUICE SETTLE domain reserved actual key value ..., SLUICE BAN domain milliseconds "
    "key "
    "value ..., SLUICE RESET domain key value ..., SLUICE RELEASE lease, SLUICE COMMIT reservation actual or SLUICE "
    "CANCEL reservation";

Result<std::uint64_t> read_tokens(std::string_view text, std::string_view what) {
  const auto number = read_integer(text, what);
  if (!number) return number.error();
  if (*number >= 0 && static_cast<std::uint64_t>(*number) <= kMaxTokens) return static_cast<std::uint64_t>(*number);
  return Error{std::string(what) + " must be 0 to " + std::to_string(kMaxTokens) + ", is " + std::to_string(*number)};
}

Result<std::int64_t> read_milliseconds(std::string_view text, std::string_view what, std::chrono::milliseconds least,
                                       std::chrono::milliseconds most) {
  const auto number = read_integer(text, what);
  if (!number) return number.error();
  if (*number >= least.count() && *number <= most.count()) return *number;
  return Error{std::string(what) + " must be " + std::to_string(least.count()) + " to " + std::to_string(most.count()) +
               ", is " + std::to_string(*number)};
}

/// Precondition: refuse_policy_words() has no objection.
std::optional<Error> read_hold(const HoldVerb& verb, std::span<const std::string_view> arguments,
                               PolicyCommand& command) {
  limiter::Hold hold;
  if (!limiter::from_text(arguments[2], hold) || hold.kind != verb.kind) {
    return Error{verb.kind == limiter::Hold::Kind::lease ? "expected a lease as SLUICE ACQUIRE has given it"
                                                         : "expected a reservation as SLUICE RESERVE has given it"};
  }
  std::uint64_t actual = 0;
  if (verb.numbers == 1) {
    const auto tokens = read_tokens(arguments[3], "actual");
    if (!tokens) return tokens.error();
    actual = *tokens;
  }
  command.hold = std::make_unique<limiter::HoldRequest>(std::move(hold));
  command.request = command.hold->request();
  command.verb = verb.kind == limiter::Hold::Kind::lease ? command.hold->release() : command.hold->commit(actual);
  return std::nullopt;
}

std::optional<Error> read_descriptors(std::span<const std::string_view> rest, PolicyCommand& command) {
  command.descriptors.clear();
  command.entries.clear();
  command.entries.reserve(rest.size());  // spans into it stay valid
  std::size_t first = 0;
  const auto end_descriptor = [&] {
    if (command.entries.size() == first) return false;
    command.descriptors.push_back({.entries = std::span(command.entries).subspan(first), .cost = {}, .limit = {}});
    first = command.entries.size();
    return true;
  };
  for (std::size_t i = 0; i < rest.size();) {
    if (rest[i] == "|") {
      if (!end_descriptor()) return Error{"expected a key and a value before '|'"};
      ++i;
      continue;
    }
    if (rest[i].empty()) return Error{"a key must not be empty"};
    if (i + 1 == rest.size()) return Error{"key " + quoted(rest[i]) + " has no value"};
    command.entries.push_back({.key = rest[i], .value = rest[i + 1]});
    i += 2;
  }
  if (!end_descriptor()) return Error{"expected a key and a value"};
  return std::nullopt;
}

std::optional<Error> read_numbers(const Verb& verb, std::span<const std::string_view> numbers, PolicyCommand& command) {
  if (verb.kind == Kind::ban) {
    const auto time = read_milliseconds(numbers[0], "milliseconds", std::chrono::milliseconds(0), store::kLongestBan);
    if (!time) return time.error();
    command.verb->time = std::chrono::milliseconds(*time);
    return std::nullopt;
  }
  if (numbers.empty()) return std::nullopt;
  const bool is_settle = verb.kind == Kind::settle;
  const auto first = read_tokens(numbers[0], is_settle ? "reserved" : "cost");
  if (!first) return first.error();
  if (is_settle) {
    command.verb->reserved = *first;
    const auto actual = read_tokens(numbers[1], "actual");
    if (!actual) return actual.error();
    command.verb->actual = *actual;
    return std::nullopt;
  }
  command.request.cost = *first;
  if (numbers.size() == 1) return std::nullopt;
  const auto longest = std::chrono::duration_cast<std::chrono::milliseconds>(limiter::kLongestReservation);
  const auto ttl = read_milliseconds(numbers[1], "milliseconds", std::chrono::milliseconds(1), longest);
  if (!ttl) return ttl.error();
  command.request.reserve = std::chrono::milliseconds(*ttl);
  return std::nullopt;
}

const Verb* find_verb(std::span<const std::string_view> arguments) {
  if (arguments.size() < 2) return nullptr;
  const auto* found =
      std::ranges::find_if(kVerbs, [&](const Verb& one) { return equal_ignoring_case(one.name, arguments[1]); });
  return found == kVerbs.end() ? nullptr : found;
}

const HoldVerb* find_hold_verb(std::span<const std::string_view> arguments) {
  if (arguments.size() < 2) return nullptr;
  const auto* found = std::ranges::find_if(
      kHoldVerbs, [&](const HoldVerb& one) { return equal_ignoring_case(one.name, arguments[1]); });
  return found == kHoldVerbs.end() ? nullptr : found;
}

}  // namespace

std::optional<Error> refuse_policy_words(std::span<const std::string_view> arguments) {
  const Error wrong_number{"wrong number of arguments for 'sluice' command: " + std::string(kUsage)};
  if (arguments.size() < 2) return wrong_number;
  if (const HoldVerb* hold = find_hold_verb(arguments)) {
    return arguments.size() == 3 + hold->numbers ? std::nullopt : std::optional(wrong_number);
  }
  const Verb* verb = find_verb(arguments);
  if (verb == nullptr) return Error{"unknown subcommand " + quoted(arguments[1]) + ": " + std::string(kUsage)};
  return arguments.size() >= 3 + verb->numbers ? std::nullopt : std::optional(wrong_number);
}

bool changes_counters(std::span<const std::string_view> arguments) {
  const Verb* verb = find_verb(arguments);
  return verb != nullptr ? verb->kind.has_value() : find_hold_verb(arguments) != nullptr;
}

std::optional<Error> read_policy_command(std::span<const std::string_view> arguments, PolicyCommand& command) {
  command.hold.reset();
  command.verb.reset();
  const Verb* verb = find_verb(arguments);
  if (verb == nullptr || arguments.size() < 3 + verb->numbers) {
    if (auto refusal = refuse_policy_words(arguments)) return refusal;
    return read_hold(*find_hold_verb(arguments), arguments, command);
  }
  command.request = {};
  command.request.domain = arguments[2];
  command.request.cost = 0;
  command.request.peek = verb->name == "peek";
  command.request.leases = command.request.peek || verb->name == "acquire";
  if (verb->kind) command.verb.emplace().kind = *verb->kind;
  if (auto error = read_numbers(*verb, arguments.subspan(3, verb->numbers), command)) return error;
  if (auto error = read_descriptors(arguments.subspan(3 + verb->numbers), command)) return error;
  command.request.descriptors = command.descriptors;
  return std::nullopt;
}

}  // namespace sluice::resp
