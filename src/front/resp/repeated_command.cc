#include "front/resp/repeated_command.h"

#include "front/resp/command_reader.h"

namespace sluice::resp {
namespace {

constexpr std::string_view kEnd = "\r\n";
constexpr std::size_t kMostDigits = 5;  // of CommandReader::kMaxBulk

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void RepeatedCommand::remember(std::string_view text, const Throttle& throttle) {
  before_.clear();
  if (!text.starts_with('*') || text.size() - throttle.key.size() > kMostBytes) return;
  const auto key_begin = static_cast<std::size_t>(throttle.key.data() - text.data());
  const std::size_t length_begin = text.rfind('$', key_begin - 1) + 1;
  before_.assign(text.substr(0, length_begin));
  behind_.assign(text.substr(key_begin + throttle.key.size()));
  throttle_ = throttle;
}

bool RepeatedCommand::matches(std::string_view input) {
  if (before_.empty() || !input.starts_with(before_)) return false;
  const std::size_t length_begin = before_.size();
  std::size_t at = length_begin;
  std::size_t size = 0;
  for (; at < input.size() && is_digit(input[at]) && at - length_begin < kMostDigits; ++at) {
    size = size * 10 + static_cast<std::size_t>(input[at] - '0');
  }
  if (at == length_begin || size > CommandReader::kMaxBulk || !input.substr(at).starts_with(kEnd)) return false;
  at += kEnd.size();
  if (input.size() - at < size || !input.substr(at + size).starts_with(behind_)) return false;
  throttle_.key = input.substr(at, size);
  used_ = at + size + behind_.size();
  return true;
}

}  // namespace sluice::resp
