#include "front/http/accept.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"

namespace sluice::http {
namespace {

/// "0.8" → 800; anything that is no quality counts as 1.
int parse_quality(std::string_view text) {
  if (text.empty() || (text.front() != '0' && text.front() != '1')) return 1000;
  int value = (text.front() - '0') * 1000;
  int weight = 100;
  for (std::size_t i = 2; i < text.size() && i < 5 && text[i] >= '0' && text[i] <= '9'; ++i, weight /= 10) {
    value += (text[i] - '0') * weight;
  }
  return std::min(value, 1000);
}

/// Removes and gives what stands before `separator`, or else all.
std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  if (end == std::string_view::npos) return std::exchange(text, {});
  const std::string_view part = text.substr(0, end);
  text = text.substr(end + 1);
  return part;
}

}  // namespace

void AcceptPreference::add(std::string_view value) {
  while (!value.empty()) {
    std::string_view item = take_part(value, ',');
    const std::string_view type = trim(take_part(item, ';'));
    int quality = 1000;
    while (!item.empty()) {
      const std::string_view parameter = trim(take_part(item, ';'));
      if (parameter.starts_with("q=") || parameter.starts_with("Q=")) quality = parse_quality(parameter.substr(2));
    }

    if (equal_ignoring_case(type, "application/problem+json")) {
      problem_ = std::max(problem_.value_or(0), quality);
    } else if (equal_ignoring_case(type, "application/json")) {
      if (!problem_) json_first_ = true;
      json_ = std::max(json_.value_or(0), quality);
    } else if (type == "*/*" || equal_ignoring_case(type, "application/*")) {
      wildcard_ = std::max(wildcard_.value_or(0), quality);
    }
  }
}

bool AcceptPreference::wants_problem() const {
  if (!problem_ || *problem_ == 0) return false;
  const int json = json_.value_or(wildcard_.value_or(0));
  return *problem_ > json || (*problem_ == json && !json_first_);
}

}  // namespace sluice::http
