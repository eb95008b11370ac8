#include "config/resolve.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/suggest.h"
#include "config/envoy_environment.h"
#include "config/ratelimit_environment.h"
#include "config/settings_file.h"

namespace sluice::config {
namespace {

constexpr std::string_view kPrefix = "SLUICE_";
constexpr std::string_view kDefault = "default";

// The values of one setting from one place, with what to put before an error in them.
struct Candidate {
  std::vector<std::string> values;
  std::string origin;
  std::string place;
  bool is_of_file = false;
};

class Resolver {
 public:
  Resolver() {
    for (const Setting& setting : all_settings()) {
      Candidate candidate{.values = {}, .origin = std::string(kDefault), .place = std::string(setting.name) + ": "};
      if (!setting.is_list || !setting.fallback.empty()) candidate.values.emplace_back(setting.fallback);
      chosen_.push_back(std::move(candidate));
    }
  }

  void take(std::size_t row, Candidate candidate) {
    // A bad value is told even when a stronger place overrides it: it would strike later, when that is taken away.
    if (auto error = all_settings()[row].set(scratch_, candidate.values)) {
      resolved_.errors.push_back(candidate.place + error->message);
      return;
    }
    chosen_[row] = std::move(candidate);
  }

  void take_file(const File& file) {
    FileContents contents = read_settings_file(file.name, file.text);
    for (std::string& error : contents.errors) resolved_.errors.push_back(std::move(error));
    resolved_.settings.queues = std::move(contents.queues);
    const std::filesystem::path folder = std::filesystem::path(file.name).parent_path();
    for (FileValue& value : contents.values) {
      const Setting& setting = all_settings()[value.row];
      if (setting.is_path) {
        for (std::string& path : value.values) {
          if (!path.empty()) path = (folder / path).string();
        }
      }
      take(value.row, {.values = std::move(value.values),
                       .origin = value.place,
                       .place = value.place + ": " + std::string(setting.name) + ": ",
                       .is_of_file = true});
    }
  }

  void take_environment(std::span<const std::string> environment) {
    for (const std::string& line : environment) {
      const std::size_t equals = line.find('=');
      if (equals == std::string::npos || !line.starts_with(kPrefix)) continue;
      const std::string name = line.substr(0, equals);
      const std::string value = line.substr(equals + 1);
      const auto row = row_of_variable(name);
      if (!row) {
        warn_if_misspelt(name);
        continue;
      }
      take(*row, {.values = all_settings()[*row].is_list ? split(value) : std::vector<std::string>{value},
                  .origin = name,
                  .place = name + ": "});
    }
  }

  /// Is a setting, of what has been taken, this?
  [[nodiscard]] bool is(std::string_view setting, std::string_view value) const {
    const Candidate& candidate = chosen_[*row_of_name(setting)];
    return !candidate.values.empty() && candidate.values.front() == value;
  }

  /// In the place of envoyproxy/ratelimit. All of its variables but those of its first Redis.
  void take_envoy_environment(std::span<const std::string> environment) {
    EnvoyEnvironment theirs = read_envoy_environment(environment);
    std::ranges::move(theirs.errors, std::back_inserter(resolved_.errors));
    std::ranges::move(theirs.warnings, std::back_inserter(resolved_.warnings));
    take_values(theirs.values, true);
    // A server file, as an image may have one, gives way to where the variables say that the policy is.
    Candidate& policy = chosen_[*row_of_name("policy")];
    if (theirs.names_policy && policy.is_of_file) {
      resolved_.warnings.push_back(policy.origin + ": policy: gives way to RUNTIME_ROOT");
      policy = {.values = {}, .origin = "RUNTIME_ROOT", .place = "RUNTIME_ROOT: "};
    }
    for (RatelimitEnvironment::Value& option : theirs.listing) {
      resolved_.variables.emplace_back(
          std::move(option.setting), Source{.values = {std::move(option.value)}, .origin = std::move(option.variable)});
    }
    resolved_.settings.envoy = std::move(theirs.options);
    if (!theirs.has_per_second) return;
    RatelimitEnvironment redis = read_per_second_environment(environment);
    std::ranges::move(redis.errors, std::back_inserter(resolved_.errors));
    std::ranges::move(redis.warnings, std::back_inserter(resolved_.warnings));
    per_second_ = std::move(redis.values);
    for (const RatelimitEnvironment::Value& value : per_second_) {
      if (value.setting != "store.redis.url") continue;
      resolved_.variables.emplace_back("REDIS_PERSECOND_URL",
                                       Source{.values = {without_password(value.value)}, .origin = value.variable});
    }
    is_per_second_ = true;
  }

  /// Where nothing of ours says where Redis is.
  void take_ratelimit_environment(std::span<const std::string> environment, bool with_defaults) {
    if (is_set(*row_of_name("store.redis.url"))) return;
    RatelimitEnvironment theirs = read_ratelimit_environment(environment, with_defaults);
    std::ranges::move(theirs.errors, std::back_inserter(resolved_.errors));
    std::ranges::move(theirs.warnings, std::back_inserter(resolved_.warnings));
    take_values(theirs.values);
  }

  void take_flags(std::span<const Flag> flags) {
    for (const Flag& flag : flags) {
      const auto row = row_of_name(flag.name);
      if (!row) {
        resolved_.errors.push_back("--" + flag.name + ": unknown setting");
        continue;
      }
      take(*row, {.values = flag.values, .origin = "--" + flag.name, .place = "--" + flag.name + ": "});
    }
  }

  Resolved finish() && {
    for (std::size_t row = 0; row < chosen_.size(); ++row) {
      Candidate& candidate = chosen_[row];
      if (auto error = all_settings()[row].set(resolved_.settings, candidate.values)) {
        resolved_.errors.push_back(candidate.place + error->message);
      }
      resolved_.sources.push_back({.values = std::move(candidate.values), .origin = std::move(candidate.origin)});
    }
    if (is_per_second_) add_per_second();
    return std::move(resolved_);
  }

 private:
  /// What nothing of ours says otherwise; with `over_file` a variable that is set is stronger than a server file.
  void take_values(std::vector<RatelimitEnvironment::Value>& values, bool over_file = false) {
    for (RatelimitEnvironment::Value& value : values) {
      const auto row = row_of_name(value.setting);
      if (!row) continue;
      const bool is_stronger = over_file && chosen_[*row].is_of_file && value.is_set;
      if (is_set(*row) && !is_stronger) continue;
      take(*row, {.values = {std::move(value.value)}, .origin = value.variable, .place = value.variable + ": "});
    }
  }

  /// The same settings, but for who and where Redis is.
  void add_per_second() {
    auto settings = std::make_shared<Settings>(resolved_.settings);
    for (const std::string_view name :
         {"store.redis.master", "store.redis.username", "store.redis.password", "store.redis.password_file",
          "store.redis.sentinel.username", "store.redis.sentinel.password", "store.redis.sentinel.password_file"}) {
      const std::vector<std::string> none{std::string()};
      all_settings()[*row_of_name(name)].set(*settings, none);
    }
    for (const RatelimitEnvironment::Value& value : per_second_) {
      const std::vector<std::string> values{value.value};
      if (auto error = all_settings()[*row_of_name(value.setting)].set(*settings, values)) {
        resolved_.errors.push_back(value.variable + ": " + error->message);
      }
    }
    resolved_.settings.per_second = std::move(settings);
  }

  [[nodiscard]] bool is_set(std::size_t row) const { return chosen_[row].origin != kDefault; }

  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      if (comma > begin) parts.push_back(text.substr(begin, comma - begin));
      begin = comma + 1;
    }
    return parts;
  }

  static std::optional<std::size_t> row_of_variable(std::string_view name) {
    for (std::size_t row = 0; row < all_settings().size(); ++row) {
      if (environment_name(all_settings()[row]) == name) return row;
    }
    return std::nullopt;
  }

  // Only near misses: whoever runs a service named "sluice" in Kubernetes gets SLUICE_PORT and its like for nothing.
  void warn_if_misspelt(const std::string& name) {
    std::vector<std::string> names;
    for (const Setting& setting : all_settings()) names.push_back(environment_name(setting));
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    if (const std::string_view near = nearest(name, candidates); !near.empty()) {
      resolved_.warnings.push_back(name + ": not a setting; did you mean " + std::string(near) + "?");
    }
  }

  Resolved resolved_;
  Settings scratch_;
  std::vector<Candidate> chosen_;
  std::vector<RatelimitEnvironment::Value> per_second_;
  bool is_per_second_ = false;
};

}  // namespace

Resolved resolve(const std::optional<File>& file, std::span<const std::string> environment,
                 std::span<const Flag> flags) {
  Resolver resolver;
  if (file) resolver.take_file(*file);
  resolver.take_environment(environment);
  resolver.take_flags(flags);
  const bool replaces_envoyproxy = resolver.is("compat", "envoyproxy");
  if (replaces_envoyproxy) resolver.take_envoy_environment(environment);
  resolver.take_ratelimit_environment(environment, replaces_envoyproxy);
  return std::move(resolver).finish();
}

}  // namespace sluice::config
