#include "config/settings_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/suggest.h"

namespace sluice::config {
namespace {

class Walker {
 public:
  explicit Walker(const std::string& file) : file_(file) {}

  FileContents read(const std::string& text) && {
    try {
      const std::vector<YAML::Node> documents = YAML::LoadAll(text);
      if (documents.size() > 1) {
        error(documents[1].Mark(), "expected one YAML document, found " + std::to_string(documents.size()));
      } else if (documents.size() == 1 && !documents.front().IsNull()) {
        walk_map(documents.front(), "");
      }
    } catch (const YAML::Exception& problem) {
      error(problem.mark, "not valid YAML: " + problem.msg);
    }
    return std::move(contents_);
  }

 private:
  [[nodiscard]] std::string place(const YAML::Mark& mark) const {
    if (mark.is_null()) return file_;
    return file_ + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
  }

  void error(const YAML::Mark& mark, const std::string& message) {
    contents_.errors.push_back(place(mark) + ": " + message);
  }

  void walk_map(const YAML::Node& map, const std::string& prefix) {
    if (!map.IsMap()) {
      error(map.Mark(), prefix.empty() ? "expected settings as 'name: value'"
                                       : "expected settings below '" + prefix + "' as 'name: value'");
      return;
    }
    for (const auto& item : map) {
      if (!item.first.IsScalar()) {
        error(item.first.Mark(), "expected the name of a setting");
        continue;
      }
      const std::string name = prefix.empty() ? item.first.Scalar() : prefix + "." + item.first.Scalar();
      if (!seen_.insert(name).second) {
        error(item.first.Mark(), "'" + name + "' is set twice");
      } else if (const auto row = row_of_name(name)) {
        take(*row, item.second);
      } else if (is_group(name)) {
        if (!item.second.IsNull()) walk_map(item.second, name);
      } else {
        unknown(item.first.Mark(), name);
      }
    }
  }

  static bool is_group(const std::string& name) {
    return std::ranges::any_of(all_settings(),
                               [&](const Setting& setting) { return setting.name.starts_with(name + "."); });
  }

  void unknown(const YAML::Mark& mark, const std::string& name) {
    std::set<std::string_view> names;
    for (const Setting& setting : all_settings()) {
      names.insert(setting.name);
      for (std::size_t dot = setting.name.find('.'); dot != std::string_view::npos;
           dot = setting.name.find('.', dot + 1)) {
        names.insert(setting.name.substr(0, dot));
      }
    }
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    const std::string_view near = nearest(name, candidates);
    error(mark,
          "unknown setting '" + name + "'" +
              (near.empty() ? "; 'sluice serve --help' lists all" : "; did you mean '" + std::string(near) + "'?"));
  }

  void take(std::size_t row, const YAML::Node& node) {
    const Setting& setting = all_settings()[row];
    FileValue value{.row = row, .values = {}, .place = place(node.Mark())};
    if (node.IsScalar()) {
      value.values.push_back(node.Scalar());
    } else if (node.IsSequence() && setting.is_list) {
      for (const YAML::Node& entry : node) {
        if (!entry.IsScalar()) {
          error(entry.Mark(), std::string(setting.name) + ": expected a list of " + std::string(setting.value));
          return;
        }
        value.values.push_back(entry.Scalar());
      }
    } else {
      error(node.Mark(), std::string(setting.name) + ": expected " + (setting.is_list ? "a list of " : "one ") +
                             std::string(setting.value) + ", found " + kind(node));
      return;
    }
    contents_.values.push_back(std::move(value));
  }

  static std::string kind(const YAML::Node& node) {
    if (node.IsNull()) return "nothing";
    return node.IsMap() ? "a map" : "a list";
  }

  const std::string& file_;
  std::set<std::string> seen_;
  FileContents contents_;
};

}  // namespace

FileContents read_settings_file(const std::string& name, const std::string& text) { return Walker(name).read(text); }

std::optional<std::size_t> row_of_name(std::string_view name) {
  const auto settings = all_settings();
  const auto found = std::ranges::find(settings, name, &Setting::name);
  if (found == settings.end()) return std::nullopt;
  return static_cast<std::size_t>(found - settings.begin());
}

}  // namespace sluice::config
