// What the environment of envoyproxy/ratelimit says that no setting of Sluice's own does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/address.h"

namespace sluice::config {

/// How names of statistics become others, with tags (DOG_STATSD_MOGRIFIER_…).
struct Mogrifier {
  std::string pattern;  ///< a regular expression
  std::string name;     ///< what the name becomes; $1 is the first group
  std::vector<std::pair<std::string, std::string>> tags;
};

/// Defaults are those of envoyproxy/ratelimit.
struct EnvoyOptions {
  enum class Statistics : std::uint8_t { none, statsd, dogstatsd, prometheus };

  std::string runtime_root = "/srv/runtime_data/current";
  std::string runtime_subdirectory;
  std::string runtime_app_directory = "config";
  bool ignores_dot_files = false;
  bool watches_root = true;
  bool needs_policy = false;  ///< to be healthy
  bool needs_store = false;   ///< ″

  bool merges_domains = false;
  bool stops_when_over = false;
  bool shadow_mode = false;
  bool quota_mode = false;
  bool dynamic_metadata = false;

  bool limit_headers = false;
  std::string limit_header = "RateLimit-Limit";
  std::string remaining_header = "RateLimit-Remaining";
  std::string reset_header = "RateLimit-Reset";

  Statistics statistics = Statistics::statsd;
  std::string statsd_host = "localhost";
  std::uint16_t statsd_port = 8125;
  std::chrono::nanoseconds flush_interval = std::chrono::seconds(10);
  std::vector<std::pair<std::string, std::string>> extra_tags;
  std::vector<Mogrifier> mogrifiers;
  std::string prometheus_address = ":9090";
  std::optional<Address> metrics;  ///< that address, where statistics are shown there
  std::string prometheus_path = "/metrics";
  bool prometheus_milliseconds = false;
  float near_limit_ratio = 0.8F;
};

}  // namespace sluice::config
