#include "policy/public_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace sluice::policy {
namespace {

constexpr std::string_view kHidden = "…";

/// Behind these stands a text of somebody else's up to the end: the YAML parser's, and numbers as they were written.
constexpr std::array<std::string_view, 2> kQuoting = {"not valid YAML: ", "found the number "};
/// What `found` may be followed by, if it is no quoted text.
constexpr std::array<std::string_view, 9> kPlain = {"a list", "a map",   "nothing",  "none",           "neither",
                                                    "both",   "several", "the text", "the quoted text"};
constexpr std::string_view kFound = "found ";

bool begins_any(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.starts_with(word); });
}

/// Behind the closing quote of the text that begins with one; quotes in it have a backslash in front.
std::size_t end_of_quoted(std::string_view text) {
  std::size_t at = 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? std::size_t{2} : std::size_t{1};
  return std::min(at + 1, text.size());
}

std::string without_content(std::string_view message) {
  std::string out;
  while (!message.empty()) {
    const bool is_first = out.empty() || out.back() == ' ' || out.back() == '(';
    for (const std::string_view quoting : kQuoting) {
      if (message.starts_with(quoting)) return out.append(quoting).append(kHidden);
    }
    if (message.starts_with(kFound) && !begins_any(message.substr(kFound.size()), kPlain) &&
        !message.substr(kFound.size()).starts_with('"')) {
      return out.append(kFound).append(kHidden);
    }
    // Such a text may have apostrophes of its own.
    if (message.front() == '\'' && is_first) return out.append("'").append(kHidden).append("'");
    if (message.front() == '"') {
      out.append("\"").append(kHidden).append("\"");
      message.remove_prefix(end_of_quoted(message));
    } else {
      out += message.front();
      message.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace

std::string public_text(const Finding& finding) {
  Finding shown = finding;
  shown.message = without_content(finding.message);
  return shown.to_string();
}

}  // namespace sluice::policy
