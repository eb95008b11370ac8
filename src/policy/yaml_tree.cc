#include "policy/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "policy/yaml_text.h"

namespace sluice::policy {
namespace {

Position position_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

/// Thrown through the parser, caught in YamlTree::parse.
struct TooMuch {
  YamlProblem problem;
};

}  // namespace

/// Turns the parser's events into nodes.
class YamlTreeBuilder final : public YAML::EventHandler {
 public:
  explicit YamlTreeBuilder(YamlTree& tree) : tree_(tree) {}

  void OnDocumentStart(const YAML::Mark&) override { tree_.documents_.push_back(nullptr); }
  void OnDocumentEnd() override {
    if (tree_.documents_.back() == nullptr) tree_.documents_.back() = &make({}, YamlNode::Kind::null);
    anchors_.clear();
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode& node = make(position_of(mark), YamlNode::Kind::null);
    remember(anchor, node);
    attach(node, node.position);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end() || std::ranges::find(open_, found->second) != open_.end()) {
      throw TooMuch{{position_of(mark), "an alias may not stand inside of what it stands for"}};
    }
    attach(*found->second, position_of(mark));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode& node = make(position_of(mark), YamlNode::Kind::scalar);
    node.text = value;
    node.plain = tag == "?";
    if (tag != "?" && tag != "!") node.tag = tag;
    remember(anchor, node);
    attach(node, node.position);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, YamlNode::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, YamlNode::Kind::map);
  }
  void OnMapEnd() override {
    resolve_merges(*open_.back());
    close();
  }

 private:
  YamlNode& make(Position position, YamlNode::Kind kind) {
    YamlNode& node = tree_.nodes_.emplace_back();
    node.position = position;
    node.kind = kind;
    if (tree_.nodes_.size() > YamlTree::kMaxNodes) throw_too_many(position);
    return node;
  }

  void remember(YAML::anchor_t anchor, YamlNode& node) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = &node;
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode::Kind kind) {
    YamlNode& node = make(position_of(mark), kind);
    remember(anchor, node);
    open_.push_back(&node);
    check_depth(0, node.position);
  }

  void close() {
    YamlNode& node = *open_.back();
    open_.pop_back();
    attach(node, node.position);
  }

  /// Puts a finished node where the parser stands.
  void attach(const YamlNode& node, Position position) {
    check_depth(node.height, position);
    if (node.weight > YamlTree::kMaxNodes) throw_too_many(position);
    if (open_.empty()) {
      tree_.documents_.back() = &node;
      return;
    }
    YamlNode& parent = *open_.back();
    parent.weight += node.weight;
    parent.height = std::max(parent.height, node.height + 1);
    if (parent.weight > YamlTree::kMaxNodes) throw_too_many(position);
    const bool is_key = parent.kind == YamlNode::Kind::map && parent.keys.size() == parent.values.size();
    (is_key ? parent.keys : parent.values).push_back(&node);
  }

  void check_depth(int height, Position position) const {
    if (static_cast<int>(open_.size()) + height > YamlTree::kMaxDepth) {
      throw TooMuch{{position, fmt::format("nested more than {} levels deep", YamlTree::kMaxDepth)}};
    }
  }

  [[noreturn]] static void throw_too_many(Position position) {
    throw TooMuch{{position, fmt::format("more than {} values, counting what aliases stand for", YamlTree::kMaxNodes)}};
  }

  /// `<<: *other` brings the keys of other maps that this one does not have itself.
  static void resolve_merges(YamlNode& map) {
    const auto is_merge = [](const YamlNode* key) { return key->plain && key->text == "<<"; };
    if (std::ranges::none_of(map.keys, is_merge)) return;
    std::vector<const YamlNode*> keys;
    std::vector<const YamlNode*> values;
    std::vector<const YamlNode*> sources;
    std::unordered_set<std::string_view> known;
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      if (!is_merge(map.keys[i])) {
        keys.push_back(map.keys[i]);
        values.push_back(map.values[i]);
        known.insert(map.keys[i]->text);
      } else if (map.values[i]->kind == YamlNode::Kind::sequence) {
        sources.insert(sources.end(), map.values[i]->values.begin(), map.values[i]->values.end());
      } else {
        sources.push_back(map.values[i]);
      }
    }
    for (const YamlNode* source : sources) {
      if (source->kind != YamlNode::Kind::map) {
        throw TooMuch{{source->position, "`<<` takes a map or a list of maps"}};
      }
      for (std::size_t i = 0; i < source->keys.size(); ++i) {
        if (!known.insert(source->keys[i]->text).second) continue;
        keys.push_back(source->keys[i]);
        values.push_back(source->values[i]);
      }
    }
    map.keys = std::move(keys);
    map.values = std::move(values);
    // The map does not lie around those whose keys it took.
    map.weight = 1;
    map.height = 1;
    for (const auto* nodes : {&map.keys, &map.values}) {
      for (const YamlNode* node : *nodes) {
        map.weight += node->weight;
        map.height = std::max(map.height, node->height + 1);
      }
    }
  }

  YamlTree& tree_;
  std::vector<YamlNode*> open_;
  std::unordered_map<YAML::anchor_t, YamlNode*> anchors_;
};

std::optional<YamlProblem> YamlTree::parse(std::string_view text, YamlTree& tree) {
  if (text.size() > kMaxBytes) {
    return YamlProblem{{}, fmt::format("the file is {} bytes long; at most {} are read", text.size(), kMaxBytes)};
  }
  std::string normalised;
  if (auto problem = normalise_yaml_text(text, normalised)) return problem;
  YamlTreeBuilder builder(tree);
  try {
    std::istringstream stream(std::move(normalised));
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const TooMuch& too_much) {
    return too_much.problem;
  } catch (const YAML::Exception& error) {
    return YamlProblem{position_of(error.mark), fmt::format("not valid YAML: {}", error.msg)};
  }
  while (!tree.documents_.empty() && tree.documents_.back()->kind == YamlNode::Kind::null) tree.documents_.pop_back();
  return std::nullopt;
}

}  // namespace sluice::policy
