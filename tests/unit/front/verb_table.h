// Which verb a limit of each kind has: the same on every port.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::front {

/// A limit for each key of kVerbLimits. Nothing comes back while a test runs.
inline constexpr std::string_view kVerbPolicy = R"(
domain: shop
leases: true
descriptors:
  - key: token_bucket
    rate_limit: { algorithm: token_bucket, period: 366d, requests_per_unit: 10 }
  - key: leaky_bucket
    rate_limit: { algorithm: leaky_bucket, period: 366d, requests_per_unit: 10, queue: 9 }
  - key: fixed_window
    rate_limit: { algorithm: fixed_window, align: first_hit, period: 366d, requests_per_unit: 10 }
  - key: sliding_window
    rate_limit: { algorithm: sliding_window, period: 366d, requests_per_unit: 10 }
  - key: sliding_log
    rate_limit: { algorithm: sliding_log, period: 366d, requests_per_unit: 10 }
  - key: concurrency
    rate_limit: { algorithm: concurrency, requests_per_unit: 10 }
  - key: shadow
    shadow_mode: true
    rate_limit: { algorithm: token_bucket, period: 366d, requests_per_unit: 10 }
  - key: quota
    quota_mode: true
    rate_limit: { algorithm: token_bucket, period: 366d, requests_per_unit: 10 }
  - key: unlimited
    rate_limit: { unlimited: true }
)";

struct VerbRow {
  std::string limit;
  std::string verb;
  std::string_view refusal;  ///< in the message; empty: it is carried out
};

inline std::vector<VerbRow> verb_table() {
  constexpr std::array limits{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log",
                              "concurrency",  "shadow",       "quota",        "unlimited",      "unknown"};
  constexpr std::array verbs{"check", "peek", "acquire", "reserve", "refund", "settle", "penalize", "reset", "ban"};
  std::vector<VerbRow> rows;
  for (const std::string limit : limits) {
    for (const std::string verb : verbs) {
      std::string_view refusal;
      if (limit == "concurrency" && verb != "peek" && verb != "acquire" && verb != "reset" && verb != "ban") {
        refusal = "a limit of concurrency";
      }
      if ((limit == "shadow" || limit == "quota") && verb == "ban") refusal = "a limit in shadow_mode or quota_mode";
      rows.push_back({limit, verb, refusal});
    }
  }
  return rows;
}

}  // namespace sluice::front
