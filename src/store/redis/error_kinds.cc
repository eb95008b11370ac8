#include "store/redis/error_kinds.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "store/redis/advice.h"

namespace sluice::store::redis {

namespace {

constexpr std::array<std::pair<std::string_view, Failure>, 12> kWords{{
    {"LOADING", Failure::loading},
    {"BUSY", Failure::busy},
    {"OOM", Failure::out_of_memory},
    {"READONLY", Failure::read_only},
    {"NOPERM", Failure::no_permission},
    {"NOAUTH", Failure::not_authenticated},
    {"WRONGPASS", Failure::not_authenticated},
    {"WRONGTYPE", Failure::wrong_type},
    {"FOREIGN", Failure::foreign_value},
    {"CLOCK", Failure::clock_apart},
    {"MASTERDOWN", Failure::read_only},
    {"UNKILLABLE", Failure::busy},
}};

bool has_word_inside(std::string_view text, std::string_view word) {
  // "ERR Error running script (call to f_…): @user_script:1: -READONLY You can't write …"
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool starts = at >= 2 && text[at - 1] == '-' && text[at - 2] == ' ';
    const std::size_t end = at + word.size();
    if (starts && end < text.size() && text[end] == ' ') return true;
  }
  return false;
}

}  // namespace

bool is_noscript(std::string_view error) { return error.starts_with("NOSCRIPT"); }

Failure classify_error(std::string_view error) {
  const std::string_view first = error.substr(0, error.find(' '));
  for (const auto& [word, failure] : kWords) {
    if (first == word) return failure;
  }
  constexpr std::array<std::string_view, 3> kWithoutLogin{
      "ERR invalid password", "ERR AUTH", "ERR Protocol error: unauthenticated"};  // what is long is not even read
  if (std::ranges::any_of(kWithoutLogin, [&](std::string_view words) { return error.starts_with(words); })) {
    return Failure::not_authenticated;
  }
  // A command of a script that the user may not give: up to Redis 7.0, and after that.
  constexpr std::array<std::string_view, 2> kWithoutRight{"The user executing the script can't",
                                                          "ACL failure in script"};
  if (std::ranges::any_of(kWithoutRight,
                          [&](std::string_view words) { return error.find(words) != std::string_view::npos; })) {
    return Failure::no_permission;
  }
  // In a script, Redis 6 says so of a command that the memory limit refuses.
  if (error.find("-OOM ") != std::string_view::npos) return Failure::out_of_memory;
  for (const auto& [word, failure] : kWords) {
    if (has_word_inside(error, word)) return failure;
  }
  return Failure::server_error;
}

std::string error_detail(Failure failure, std::string_view error) {
  switch (failure) {
    case Failure::server_error:
      return one_line(error);
    case Failure::no_permission:
      return advised(one_line(error), kRights);
    case Failure::not_authenticated:
      return advised(one_line(error), kLogin);
    case Failure::out_of_memory:
      return std::string(kFull);
    default:
      return {};
  }
}

std::string one_line(std::string_view error) {
  constexpr std::size_t most = 200;
  std::string line(error.substr(0, std::min(error.find_first_of("\r\n"), most)));
  std::ranges::replace_if(line, [](char byte) { return byte < ' ' || byte > '~'; }, '?');
  return line;
}

}  // namespace sluice::store::redis
