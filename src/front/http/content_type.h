// What bodies are, as Content-Type says it.
#pragma once

#include <string_view>

namespace sluice::http {

inline constexpr std::string_view kJson = "application/json";
inline constexpr std::string_view kProblemJson = "application/problem+json";
inline constexpr std::string_view kText = "text/plain; charset=utf-8";

}  // namespace sluice::http
