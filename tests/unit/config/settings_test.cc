#include "config/settings.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace {

using sluice::config::all_settings;
using sluice::config::environment_name;
using sluice::config::Setting;
using sluice::config::Settings;
using sluice::config::without_password;

TEST(SettingsTable, NamesAndVariablesAreUnique) {
  std::set<std::string_view> names;
  std::set<std::string> variables;
  for (const Setting& setting : all_settings()) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    EXPECT_TRUE(variables.insert(environment_name(setting)).second) << setting.name;
    EXPECT_FALSE(setting.help.empty()) << setting.name;
  }
  EXPECT_TRUE(variables.contains("SLUICE_STORE_REDIS_URL"));
  EXPECT_TRUE(variables.contains("SLUICE_STORE_MEMORY_MAX_KEYS"));
}

TEST(SettingsTable, EveryDefaultIsAValidValue) {
  for (const Setting& setting : all_settings()) {
    if (setting.is_list) continue;
    Settings settings;
    const std::vector<std::string> values{std::string(setting.fallback)};
    const auto error = setting.set(settings, values);
    EXPECT_FALSE(error.has_value()) << setting.name << ": " << (error ? error->message : "");
  }
}

/// What each listener has stands in the manual once: "listen.*.tls.cert".
std::string name_in_manual(std::string_view name) {
  for (const std::string_view listener : {"grpc", "http", "resp", "admin"}) {
    const std::string begin = "listen." + std::string(listener) + ".";
    if (name.starts_with(begin)) return "listen.*." + std::string(name.substr(begin.size()));
  }
  return std::string(name);
}

TEST(SettingsTable, TheManualNamesEverySettingWithItsDefault) {
  std::ifstream in(SLUICE_SOURCE_DIR "/docs/configuration.md");
  const std::string manual((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  for (const Setting& setting : all_settings()) {
    const std::string fallback = setting.fallback.empty() ? "" : "`" + std::string(setting.fallback) + "`";
    const std::string row =
        "| `" + name_in_manual(setting.name) + "` | " + std::string(setting.value) + " | " + fallback + " |";
    EXPECT_NE(manual.find(row), std::string::npos) << "docs/configuration.md lacks the row\n" << row;
  }
}

TEST(Passwords, AreHidden) {
  EXPECT_EQ(without_password("redis://127.0.0.1:6379"), "redis://127.0.0.1:6379");
  EXPECT_EQ(without_password("redis://:secret@h:1/2"), "redis://:***@h:1/2");
  EXPECT_EQ(without_password("redis://user:se@cr:et@h"), "redis://user:***@h");
  EXPECT_EQ(without_password("redis://user@h:1"), "redis://user@h:1");
  EXPECT_EQ(without_password("user:secret@h:1"), "user:***@h:1");
}

}  // namespace
