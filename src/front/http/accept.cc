#include "front/http/accept.h"

#include <algorithm>

#include "front/http/ascii.h"

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

}  // namespace

void AcceptPreference::add(std::string_view value) {
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    std::string_view item = value.substr(0, comma);
    value.remove_prefix(std::min(comma + 1, value.size()));

    const std::size_t semicolon = std::min(item.find(';'), item.size());
    const std::string_view type = trim(item.substr(0, semicolon));
    item.remove_prefix(semicolon);
    int quality = 1000;
    while (!item.empty()) {
      item.remove_prefix(1);
      const std::size_t next = std::min(item.find(';'), item.size());
      const std::string_view parameter = trim(item.substr(0, next));
      if (parameter.size() >= 2 && equal_ignoring_case(parameter.substr(0, 2), "q=")) {
        quality = parse_quality(parameter.substr(2));
      }
      item.remove_prefix(next);
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
