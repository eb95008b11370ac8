#include "front/resp/policy_command.h"

#include <array>
#include <cstddef>
#include <string>

#include "base/ascii.h"
#include "front/resp/throttle.h"
#include "sluice/limit.h"

namespace sluice::resp {
namespace {

using Kind = limiter::CounterVerb::Kind;

struct Verb {
  std::string_view name;
  std::optional<Kind> kind;
  std::size_t numbers;  ///< between the domain and the keys
};

constexpr std::array<Verb, 6> kVerbs = {{
    {"check", std::nullopt, 1},
    {"peek", std::nullopt, 1},
    {"refund", Kind::refund, 1},
    {"settle", Kind::settle, 2},
    {"penalize", Kind::penalize, 1},
    {"reset", Kind::reset, 0},
}};

constexpr std::string_view kUsage =
    "expected SLUICE CHECK|PEEK|REFUND|PENALIZE domain cost key value ..., SLUICE SETTLE domain reserved actual key "
    "value ... or SLUICE RESET domain key value ...";

Result<std::uint64_t> read_tokens(std::string_view text, std::string_view what) {
  const auto number = read_integer(text, what);
  if (!number) return number.error();
  if (*number >= 0 && static_cast<std::uint64_t>(*number) <= kMaxTokens) return static_cast<std::uint64_t>(*number);
  return Error{std::string(what) + " must be 0 to " + std::to_string(kMaxTokens) + ", is " + std::to_string(*number)};
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

}  // namespace

std::optional<Error> read_policy_command(std::span<const std::string_view> arguments, PolicyCommand& command) {
  const Verb* verb = nullptr;
  if (arguments.size() > 1) {
    for (const Verb& one : kVerbs) {
      if (equal_ignoring_case(one.name, arguments[1])) verb = &one;
    }
    if (verb == nullptr) return Error{"unknown subcommand " + quoted(arguments[1]) + ": " + std::string(kUsage)};
  }
  if (verb == nullptr || arguments.size() < 3 + verb->numbers) {
    return Error{"wrong number of arguments for 'sluice' command: " + std::string(kUsage)};
  }
  command.verb.reset();
  command.request = {.domain = arguments[2], .descriptors = {}, .cost = 0, .peek = verb->name == "peek"};
  if (verb->kind) command.verb.emplace().kind = *verb->kind;
  if (verb->numbers == 1) {
    const auto cost = read_tokens(arguments[3], "cost");
    if (!cost) return cost.error();
    command.request.cost = *cost;
  } else if (verb->numbers == 2) {
    const auto reserved = read_tokens(arguments[3], "reserved");
    if (!reserved) return reserved.error();
    const auto actual = read_tokens(arguments[4], "actual");
    if (!actual) return actual.error();
    command.verb->reserved = *reserved;
    command.verb->actual = *actual;
  }
  if (auto error = read_descriptors(arguments.subspan(3 + verb->numbers), command)) return error;
  command.request.descriptors = command.descriptors;
  return std::nullopt;
}

}  // namespace sluice::resp
