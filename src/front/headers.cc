#include "front/headers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::front {
namespace {

constexpr std::uint64_t kLargestInteger = 999'999'999'999'999;  // of a structured field (RFC 9651)
constexpr std::int64_t kSecond = 1'000'000'000;

void append_number(std::string& out, std::uint64_t value) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

void append_integer(std::string& out, std::uint64_t value) { append_number(out, std::min(value, kLargestInteger)); }

std::uint64_t ceil_seconds(Wait wait) { return static_cast<std::uint64_t>(wait.ceil_seconds()); }

/// Longer names are cut, so that one limit's name cannot fill an answer's head.
constexpr std::size_t kLongestName = 96;

/// A structured field's String holds printable ASCII only: other bytes are percent-encoded. No more than kLongestName
/// characters are appended, and no part of an escape.
void append_name(std::string& out, std::string_view name) {
  const auto is_plain = [](char c) { return c >= 0x20 && c <= 0x7E && c != '"' && c != '\\'; };
  if (name.size() <= kLongestName && std::ranges::all_of(name, is_plain)) {
    out += name;
    return;
  }
  constexpr std::string_view hex = "0123456789ABCDEF";
  const std::size_t end = out.size() + kLongestName;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    std::array<char, 3> text{c};
    std::size_t size = 1;
    if (byte < 0x20 || byte > 0x7E) {
      text = {'%', hex[byte >> 4U], hex[byte & 15U]};
      size = 3;
    } else if (c == '"' || c == '\\') {
      text = {'\\', c};
      size = 2;
    }
    if (out.size() + size > end) return;
    out.append(text.data(), size);
  }
}

/// Appends an item's name and what stands before its quota. Limits whose names are the same, or are when cut, are told
/// apart by a number: a policy's name stands in an answer once. Returns the name with its quotes, as a part of `out`.
std::string_view append_unique_name(std::string& out, std::string_view name) {
  constexpr std::string_view tail = ";q=";
  const std::size_t begin = out.size();
  out += '"';
  append_name(out, name);
  const std::size_t plain = out.size();
  for (std::uint64_t number = 1;; ++number) {
    out.resize(plain);
    if (number > 1) {
      out += '-';
      append_number(out, number);
    }
    out += '"';
    const std::size_t end = out.size();
    out += tail;
    const std::string_view all = out;
    // Quotes in a name have a backslash before them, so that at worst a name is numbered that need not be.
    if (all.substr(0, begin).find(all.substr(begin)) == std::string_view::npos) return all.substr(begin, end - begin);
  }
}

/// `tokens` at the limit's rate take this long, or nothing when that is longer than any wait.
std::optional<std::int64_t> nanoseconds_for(std::uint64_t tokens, const Limit& limit) {
  if (limit.rate == 0) return std::nullopt;
  __extension__ using Wide = unsigned __int128;  // up to 10^15 tokens × 366 days
  const Wide product = Wide{tokens} * static_cast<std::uint64_t>(limit.period.count());
  const Wide time = (product + limit.rate - 1) / limit.rate;
  if (time > static_cast<std::uint64_t>(std::chrono::nanoseconds(kLongestWait).count())) return std::nullopt;
  return static_cast<std::int64_t>(time);
}

/// The window in which the quota `limit` can be used: a bucket's is the time it takes to fill. Nothing when a whole
/// number of seconds cannot say it.
std::optional<std::uint64_t> window_seconds(const Limit& limit, std::uint64_t quota) {
  std::optional<std::int64_t> window;
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
    case Algorithm::leaky_bucket:
      window = nanoseconds_for(quota, limit);
      break;
    case Algorithm::fixed_window:
      if (limit.align != Align::calendar) window = limit.period.count();
      break;
    case Algorithm::sliding_window:
    case Algorithm::sliding_log:
      window = limit.period.count();
      break;
    case Algorithm::concurrency:
      break;
  }
  if (!window || *window < kSecond) return std::nullopt;
  return ceil_seconds(Wait(std::chrono::nanoseconds(*window)));
}

/// Returns the item's name with its quotes, as a part of `out`.
std::string_view append_policy_item(std::string& out, const policy::Rule& rule, const Decision& decision) {
  if (!out.empty()) out += ", ";
  const std::size_t begin = out.size();
  const std::size_t length = append_unique_name(out, rule.label()).size();
  append_integer(out, decision.limit);
  if (rule.counted.numbers.algorithm == Algorithm::concurrency) out += R"(;qu="concurrent-requests")";
  if (const auto window = window_seconds(rule.counted.numbers, decision.limit)) {
    out += ";w=";
    append_integer(out, *window);
  }
  return std::string_view(out).substr(begin, length);
}

/// For how long the caller should use no more than what remains; zero when there is nothing to say.
std::uint64_t effective_seconds(const policy::Rule& rule, const Decision& decision) {
  if (decision.remaining != 0 || rule.counted.numbers.algorithm == Algorithm::fixed_window) {
    return decision.reset_after.is_never() ? 0 : ceil_seconds(decision.reset_after);
  }
  if (!decision.allowed) return decision.retry_after.is_never() ? 0 : ceil_seconds(decision.retry_after);
  // Empty after this charge: the next token of a bucket is never farther away than one token takes.
  Wait next = decision.reset_after;
  if (const Limit& limit = rule.counted.numbers;
      limit.algorithm == Algorithm::token_bucket || limit.algorithm == Algorithm::leaky_bucket) {
    if (const auto one = nanoseconds_for(1, limit)) next = std::min(next, Wait(std::chrono::nanoseconds(*one)));
  }
  return next.is_never() ? 0 : ceil_seconds(next);
}

/// Retry-After must not be earlier than the end of a `t` with nothing left (the draft), so such a `t` ends with it.
void append_state_item(std::string& out, std::string_view name, const policy::Rule& rule, const Decision& decision,
                       std::optional<std::uint64_t> retry_after) {
  if (!out.empty()) out += ", ";
  out += name;
  out += ";r=";
  append_integer(out, decision.remaining);
  std::uint64_t seconds = effective_seconds(rule, decision);
  if (retry_after && decision.remaining == 0) seconds = std::min(seconds, *retry_after);
  if (seconds != 0) {
    out += ";t=";
    append_integer(out, seconds);
  }
}

bool is_shown(const limiter::Status& status) {
  return status.rule != nullptr && !status.rule->unlimited && status.rule->enforcement != store::Enforcement::shadow &&
         has_figures(status.decision);
}

/// Is `a` nearer to refusal than `b`?
bool is_tighter(const Decision& a, const Decision& b) {
  if (a.allowed != b.allowed) return !a.allowed;
  if (!a.allowed && a.retry_after != b.retry_after) return a.retry_after > b.retry_after;
  return a.remaining < b.remaining;
}

/// Of several keys of one limit only the tightest is listed (the first, of equals).
bool is_listed(std::span<const limiter::Status> statuses, std::size_t index) {
  const limiter::Status& self = statuses[index];
  if (!is_shown(self)) return false;
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const limiter::Status& other = statuses[i];
    if (i == index || !is_shown(other) || other.rule->counted.id != self.rule->counted.id) continue;
    if (is_tighter(other.decision, self.decision)) return false;
    if (i < index && !is_tighter(self.decision, other.decision)) return false;
  }
  return true;
}

}  // namespace

bool has_figures(const Decision& decision) {
  return decision.source != Source::fallback_allow && decision.source != Source::fallback_deny;
}

Wait until_reset(const policy::Rule& rule, const Decision& decision) {
  if (rule.counted.numbers.algorithm == Algorithm::fixed_window) return decision.reset_after;
  if (decision.allowed || decision.retry_after.is_never()) return decision.reset_after;
  return decision.retry_after;
}

void render_headers(const limiter::Answer& answer, const HeaderOptions& options, HeaderList& out) {
  if (options.plain != nullptr) {
    render_plain_headers(answer, *options.plain, out);
    return;
  }
  out.clear();
  if (answer.problem != limiter::Answer::Problem::none || !answer.has_figures) return;

  std::optional<std::uint64_t> retry_after;
  if (!answer.allowed && has_figures(answer.decision) && !answer.decision.retry_after.is_never()) {
    retry_after = std::max<std::uint64_t>(1, ceil_seconds(answer.decision.retry_after));
    if (options.retry_after) append_number(out.add("Retry-After"), *retry_after);
  }

  const std::span<const limiter::Status> statuses = answer.statuses;
  if (options.rate_limit && std::any_of(statuses.begin(), statuses.end(), is_shown)) {
    std::string& state = out.add("RateLimit");
    std::string& policy = out.add("RateLimit-Policy");
    // What one limit usually takes, at once.
    constexpr std::size_t usual = 63;
    state.reserve(usual);
    policy.reserve(usual);
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      if (!is_listed(statuses, i)) continue;
      const std::string_view name = append_policy_item(policy, *statuses[i].rule, statuses[i].decision);
      append_state_item(state, name, *statuses[i].rule, statuses[i].decision, retry_after);
    }
  }

  if (options.x_rate_limit && answer.deciding != nullptr && !answer.deciding->unlimited &&
      has_figures(answer.decision) && answer.deciding->enforcement != store::Enforcement::shadow) {
    append_number(out.add("X-RateLimit-Limit"), answer.decision.limit);
    append_number(out.add("X-RateLimit-Remaining"), answer.decision.remaining);
    if (const Wait reset = until_reset(*answer.deciding, answer.decision); !reset.is_never()) {
      append_number(out.add("X-RateLimit-Reset"), ceil_seconds(reset));
    }
  }
}

}  // namespace sluice::front
