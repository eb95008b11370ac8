#include "tracing/trace_context.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/ascii.h"

namespace sluice::tracing {
namespace {

// version "-" trace-id "-" parent-id "-" trace-flags
constexpr std::size_t kTraceAt = 3;
constexpr std::size_t kSpanAt = 36;
constexpr std::size_t kFlagsAt = 53;
constexpr std::size_t kLength = 55;
constexpr std::uint8_t kNoVersion = 0xff;

constexpr std::size_t kMostText = 256;  ///< bytes of a member's key, and of its value

// Of a lower case hexadecimal digit; above 15: it is none.
unsigned digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  return 16;
}

bool read_hex(std::string_view text, std::span<std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const unsigned high = digit_of(text[2 * i]);
    const unsigned low = digit_of(text[2 * i + 1]);
    if (high > 15 || low > 15) return false;
    bytes[i] = static_cast<std::uint8_t>(high << 4U | low);
  }
  return true;
}

bool is_zero(std::span<const std::uint8_t> bytes) {
  return std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; });
}

bool is_key(std::string_view key) {
  const auto is_start = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !key.empty() && key.size() <= kMostText && is_start(key.front()) && std::ranges::all_of(key, [&](char c) {
    return is_start(c) || std::string_view("_-*/@").find(c) != std::string_view::npos;
  });
}

// Space at its end is not its own; that has been taken off.
bool is_value(std::string_view value) {
  return !value.empty() && value.size() <= kMostText &&
         std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

}  // namespace

std::optional<TraceParent> parse_traceparent(std::string_view value) {
  if (value.size() < kLength) return std::nullopt;
  if (value[kTraceAt - 1] != '-' || value[kSpanAt - 1] != '-' || value[kFlagsAt - 1] != '-') return std::nullopt;
  std::array<std::uint8_t, 1> version{};
  std::array<std::uint8_t, 1> flags{};
  TraceParent parent;
  const bool is_hex = read_hex(value, version) && read_hex(value.substr(kTraceAt), parent.trace) &&
                      read_hex(value.substr(kSpanAt), parent.span) && read_hex(value.substr(kFlagsAt), flags);
  if (!is_hex || version[0] == kNoVersion || is_zero(parent.trace) || is_zero(parent.span)) return std::nullopt;
  if (version[0] == 0 && value.size() != kLength) return std::nullopt;
  // A later version may have more, behind another dash.
  if (value.size() > kLength && value[kLength] != '-') return std::nullopt;
  constexpr std::uint8_t sampled = 1;
  parent.flags = version[0] == 0 ? flags[0] : flags[0] & sampled;
  return parent;
}

bool is_tracestate(std::string_view value) {
  std::vector<std::string_view> keys;
  while (!value.empty()) {
    const std::size_t end = std::min(value.find(','), value.size());
    const std::string_view member = trim(value.substr(0, end));
    value.remove_prefix(std::min(end + 1, value.size()));
    if (member.empty()) continue;
    const std::size_t equals = member.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = member.substr(0, equals);
    if (!is_key(key) || !is_value(member.substr(equals + 1)) || keys.size() == kMostStateMembers) return false;
    if (std::ranges::find(keys, key) != keys.end()) return false;
    keys.push_back(key);
  }
  return true;
}

void TraceFields::add_parent(std::string_view value) {
  parent_ = has_parent_ ? std::nullopt : parse_traceparent(value);
  has_parent_ = true;
}

void TraceFields::add_state(std::string_view value) {
  if (value.empty() || state_.size() > kMostStateBytes) return;  // or too long already
  if (!state_.empty()) state_ += ',';
  state_ += value.substr(0, kMostStateBytes + 1);
}

void TraceFields::clear() {
  parent_.reset();
  has_parent_ = false;
  state_.clear();
}

std::string_view TraceFields::state() const {
  const bool is_good = parent_ && state_.size() <= kMostStateBytes && is_tracestate(state_);
  return is_good ? std::string_view(state_) : std::string_view();
}

}  // namespace sluice::tracing
