#include "config/redis_options.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

namespace {

using namespace std::chrono_literals;
using sluice::config::all_settings;
using sluice::config::redis_options;
using sluice::config::Setting;
using sluice::config::Settings;
using sluice::store::redis::RedisOptions;

Settings defaults() {
  Settings settings;
  for (const Setting& setting : all_settings()) {
    if (setting.is_list) continue;
    const std::array<std::string, 1> values{std::string(setting.fallback)};
    EXPECT_FALSE(setting.set(settings, values).has_value()) << setting.name;
  }
  return settings;
}

// All that a store is made of, so that two can be compared.
std::string text_of(const RedisOptions& options) {
  std::ostringstream text;
  const auto files = [&text](const sluice::store::redis::TlsFiles& tls) {
    text << tls.ca << '|' << tls.cert << '|' << tls.key << '|' << tls.server_name << '|' << tls.verify << '|'
         << tls.verify_name << '|';
  };
  const auto& access = options.access;
  text << options.url << '|' << options.prefix << '|' << options.timeout.count() << '|' << options.failures << '|'
       << options.probe_interval.count() << '|' << options.connection_max_age.count() << '|'
       << static_cast<int>(options.script_style) << '|' << options.cluster_groups << '|' << options.proxy << '|'
       << options.wait_replicas << '|' << options.wait_timeout.count() << '|' << access.master << '|' << access.user
       << '|' << access.password << '|' << access.password_file << '|' << access.sentinel_user << '|'
       << access.sentinel_password << '|' << access.sentinel_password_file << '|'
       << static_cast<int>(access.sentinel_tls) << '|';
  files(access.tls);
  files(access.sentinel_tls_files);
  return text.str();
}

TEST(RedisOptionsOfSettings, EachSettingOfRedisReachesTheStore) {
  // For those that do not take any text.
  const std::map<std::string_view, std::string> values{{"store.redis.url", "redis://elsewhere:1"},
                                                       {"store.redis.tls.verify", "false"},
                                                       {"store.redis.tls.verify_name", "false"},
                                                       {"store.redis.sentinel.tls.verify_name", "false"},
                                                       {"store.redis.sentinel.tls.mode", "on"},
                                                       {"store.redis.sentinel.tls.verify", "false"},
                                                       {"store.redis.cluster_groups", "64"},
                                                       {"store.redis.proxy", "true"},
                                                       {"store.redis.wait_replicas", "2"},
                                                       {"store.redis.wait_timeout", "3ms"},
                                                       {"store.redis.failures", "9"},
                                                       {"store.redis.probe_interval", "7ms"},
                                                       {"store.redis.connection_max_age", "11m"},
                                                       {"store.redis.script_style", "literal"}};
  // The caller's, and that of what stands before the store.
  const auto is_of_another = [](std::string_view name) {
    return name == "store.redis.timeout" || name == "store.redis.denial_cache_max";
  };
  const std::string before = text_of(redis_options(defaults(), 20ms));
  int count = 0;
  for (const Setting& setting : all_settings()) {
    if (!setting.name.starts_with("store.redis.") || is_of_another(setting.name)) continue;
    Settings settings = defaults();
    const auto named = values.find(setting.name);
    const std::array<std::string, 1> value{named == values.end() ? "some:" : named->second};
    const auto error = setting.set(settings, value);
    ASSERT_FALSE(error.has_value()) << setting.name << ": " << error->message;
    EXPECT_NE(text_of(redis_options(settings, 20ms)), before) << setting.name;
    ++count;
  }
  EXPECT_GT(count, 20);
}

TEST(RedisOptionsOfSettings, TheTimeoutIsTheCallers) {
  Settings settings = defaults();
  EXPECT_EQ(redis_options(settings, settings.redis_timeout).timeout, 20ms);
  EXPECT_EQ(redis_options(settings, 5s).timeout, 5s);
}

}  // namespace
