#include "front/resp/command_reader.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include "base/ascii.h"

namespace sluice::resp {
namespace {

constexpr std::size_t kMaxNumberLine = 24;
constexpr std::string_view kEnd = "\r\n";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::optional<char> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<char>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<char>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<char>(c - 'A' + 10);
  return std::nullopt;
}

char unescaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

std::string shown(char c) {
  if (c > ' ' && c < 0x7f) return std::string(1, c);
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return {'\\', 'x', digits[byte >> 4U], digits[byte & 15U]};
}

}  // namespace

CommandReader::Status CommandReader::more(std::size_t wanted) {
  arguments_.clear();
  used_ = 0;
  wanted_ = wanted;
  return Status::more;
}

CommandReader::Status CommandReader::broken(std::string error) {
  arguments_.clear();
  used_ = 0;
  error_ = "Protocol error: " + std::move(error);
  return Status::broken;
}

CommandReader::Status CommandReader::read(std::string_view input) {
  arguments_.clear();
  text_ = {};
  used_ = 0;
  if (input.empty()) return more(1);
  const Status status = input.front() == '*' ? read_array(input) : read_line(input);
  text_ = input.substr(0, used_);
  return status;
}

CommandReader::Status CommandReader::read_number(std::string_view input, std::string_view what, long long& number) {
  // One digit or two, as nearly all are.
  std::size_t at = used_ + 1;
  if (at + 3 < input.size() && is_digit(input[at])) {
    number = input[at++] - '0';
    if (is_digit(input[at])) number = number * 10 + (input[at++] - '0');
    if (input[at] == '\r' && input[at + 1] == '\n') {
      used_ = at + kEnd.size();
      return Status::command;
    }
  }
  const std::string_view rest = input.substr(used_ + 1);
  const std::size_t length = rest.substr(0, kMaxNumberLine).find(kEnd);
  if (length == std::string_view::npos) {
    if (rest.size() >= kMaxNumberLine) return broken("invalid " + std::string(what));
    return more(input.size() + 1);
  }
  const char* end = rest.data() + length;
  const auto [stop, error] = std::from_chars(rest.data(), end, number);
  if (error != std::errc{} || stop != end) return broken("invalid " + std::string(what));
  used_ += 1 + length + kEnd.size();
  return Status::command;
}

CommandReader::Status CommandReader::read_array(std::string_view input) {
  long long count = 0;
  if (const Status status = read_number(input, "multibulk length", count); status != Status::command) return status;
  if (count > static_cast<long long>(kMaxArguments)) {
    return broken("invalid multibulk length: at most " + std::to_string(kMaxArguments) + " arguments");
  }
  for (long long i = 0; i < count; ++i) {
    if (used_ == input.size()) return more(input.size() + 1);
    if (input[used_] != '$') return broken("expected '$', got '" + shown(input[used_]) + "'");
    long long length = 0;
    if (const Status status = read_number(input, "bulk length", length); status != Status::command) return status;
    if (length < 0 || length > static_cast<long long>(kMaxBulk)) {
      return broken("invalid bulk length: 0 to " + std::to_string(kMaxBulk) + " bytes");
    }
    const auto size = static_cast<std::size_t>(length);
    const std::size_t end = used_ + size + kEnd.size();
    if (end > kMaxCommand) return broken("too long: at most " + std::to_string(kMaxCommand) + " bytes a command");
    if (end > input.size()) return more(end);
    if (input.substr(used_ + size, kEnd.size()) != kEnd) return broken("a bulk string does not end where it said");
    arguments_.push_back(input.substr(used_, size));
    used_ = end;
  }
  return Status::command;
}

CommandReader::Status CommandReader::read_line(std::string_view input) {
  const std::size_t end = input.substr(0, kMaxLine).find('\n');
  if (end == std::string_view::npos) {
    if (input.size() >= kMaxLine) return broken("too big inline request");
    return more(input.size() + 1);
  }
  if (!split(input.substr(0, end))) return broken("unbalanced quotes in request");
  used_ = end + 1;
  return Status::command;
}

bool CommandReader::split(std::string_view line) {
  unquoted_.clear();
  unquoted_.reserve(line.size());  // views into it stay valid
  std::size_t at = 0;
  for (;;) {
    while (at < line.size() && is_space(line[at])) ++at;
    if (at == line.size()) return true;
    if (arguments_.size() == kMaxArguments) return false;
    const std::size_t begin = at;
    while (at < line.size() && !is_space(line[at]) && line[at] != '"' && line[at] != '\'') ++at;
    if (at == line.size() || is_space(line[at])) {
      arguments_.push_back(line.substr(begin, at - begin));
      continue;
    }
    const std::size_t text_begin = unquoted_.size();
    unquoted_.append(line.substr(begin, at - begin));
    if (!read_quoted(line, at)) return false;
    arguments_.push_back(std::string_view(unquoted_).substr(text_begin));
  }
}

// From the opening quote at `at`; behind the closing one the word must end.
bool CommandReader::read_quoted(std::string_view line, std::size_t& at) {
  const char quote = line[at++];
  while (at < line.size() && line[at] != quote) {
    const std::string_view rest = line.substr(at);
    if (quote == '"' && rest.size() >= 4 && rest.starts_with("\\x")) {
      const auto high = hex_digit(rest[2]);
      const auto low = hex_digit(rest[3]);
      if (high && low) {
        unquoted_.push_back(static_cast<char>(*high * 16 + *low));
        at += 4;
        continue;
      }
    }
    const bool is_escape = rest.front() == '\\' && rest.size() > 1 && (quote == '"' || rest[1] == '\'');
    unquoted_.push_back(is_escape ? unescaped(rest[1]) : rest.front());
    at += is_escape ? 2 : 1;
  }
  if (at == line.size()) return false;
  ++at;
  return at == line.size() || is_space(line[at]);
}

}  // namespace sluice::resp
