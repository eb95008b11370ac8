#include "config/settings_file.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/suggest.h"
#include "yaml/tree.h"

namespace sluice::config {
namespace {

class Walker {
 public:
  explicit Walker(const std::string& file) : file_(file) {}

  FileContents read(std::string_view text) && {
    yaml::Tree tree;
    if (const auto problem = yaml::Tree::parse(text, tree)) {
      error(problem->position, problem->message);
    } else if (const auto& documents = tree.documents(); documents.size() > 1) {
      error(documents[1]->position, "expected one YAML document, found " + std::to_string(documents.size()));
    } else if (documents.size() == 1) {
      walk_map(*documents.front(), "");
    }
    return std::move(contents_);
  }

 private:
  [[nodiscard]] std::string place(yaml::Position position) const {
    if (position.line == 0) return file_;
    return file_ + ":" + std::to_string(position.line) + ":" + std::to_string(position.column);
  }

  void error(yaml::Position position, const std::string& message) {
    contents_.errors.push_back(place(position) + ": " + message);
  }

  void walk_map(const yaml::Node& map, const std::string& prefix) {
    if (map.kind != yaml::Node::Kind::map) {
      error(map.position, prefix.empty() ? "expected settings as 'name: value'"
                                         : "expected settings below '" + prefix + "' as 'name: value'");
      return;
    }
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      const yaml::Node& key = *map.keys[i];
      const yaml::Node& value = *map.values[i];
      if (key.kind != yaml::Node::Kind::scalar) {
        error(key.position, "expected the name of a setting");
        continue;
      }
      const std::string name = name_of(prefix, key.text);
      const auto row = row_of_name(name);
      if (row && value.kind == yaml::Node::Kind::map && is_group(name)) {
        walk_map(value, name);
      } else if (!seen_.insert(name).second) {
        error(key.position, "'" + name + "' is set twice");
      } else if (row) {
        take(*row, value);
      } else if (name == "queues") {
        QueuesText queues = read_queues(value, file_);
        contents_.queues = std::move(queues.queues);
        for (std::string& message : queues.errors) contents_.errors.push_back(std::move(message));
      } else if (is_group(name)) {
        if (value.kind != yaml::Node::Kind::null) walk_map(value, name);
      } else {
        unknown(key.position, name);
      }
    }
  }

  /// What has settings of its own below it may have its own value there, too, as `address`.
  static std::string name_of(const std::string& prefix, const std::string& key) {
    if (prefix.empty()) return key;
    return key == "address" && row_of_name(prefix) ? prefix : prefix + "." + key;
  }

  static bool is_group(const std::string& name) {
    return std::ranges::any_of(all_settings(),
                               [&](const Setting& setting) { return setting.name.starts_with(name + "."); });
  }

  void unknown(yaml::Position position, const std::string& name) {
    std::set<std::string_view> names{"queues"};
    for (const Setting& setting : all_settings()) {
      names.insert(setting.name);
      for (std::size_t dot = setting.name.find('.'); dot != std::string_view::npos;
           dot = setting.name.find('.', dot + 1)) {
        names.insert(setting.name.substr(0, dot));
      }
    }
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    const std::string_view near = nearest(name, candidates);
    error(position,
          "unknown setting '" + name + "'" +
              (near.empty() ? "; 'sluice serve --help' lists all" : "; did you mean '" + std::string(near) + "'?"));
  }

  void take(std::size_t row, const yaml::Node& node) {
    const Setting& setting = all_settings()[row];
    FileValue value{.row = row, .values = {}, .place = place(node.position)};
    if (node.kind == yaml::Node::Kind::scalar) {
      value.values.push_back(node.text);
    } else if (node.kind == yaml::Node::Kind::sequence && setting.is_list) {
      for (const yaml::Node* entry : node.values) {
        if (entry->kind != yaml::Node::Kind::scalar) {
          error(entry->position, std::string(setting.name) + ": expected a list of " + std::string(setting.value));
          return;
        }
        value.values.push_back(entry->text);
      }
    } else {
      error(node.position, std::string(setting.name) + ": expected " + (setting.is_list ? "a list of " : "one ") +
                               std::string(setting.value) + ", found " + kind(node));
      return;
    }
    contents_.values.push_back(std::move(value));
  }

  static std::string kind(const yaml::Node& node) {
    if (node.kind == yaml::Node::Kind::null) return "nothing";
    return node.kind == yaml::Node::Kind::map ? "a map" : "a list";
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
