#include "yaml/tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "yaml/text.h"

namespace sluice::yaml {
namespace {

Position position_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

/// Where the first line up to `last` that is indented by a tab has it; the parser tells that as anything.
std::optional<Position> tab_in_indentation(std::string_view text, int last) {
  for (int line = 1; line <= last; ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view blanks = text.substr(0, std::min(text.find_first_not_of(" \t"), end));
    const std::size_t tab = blanks.find('\t');
    if (tab != std::string_view::npos && blanks.size() < end) return Position{line, static_cast<int>(tab) + 1};
    if (end == text.size()) break;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

/// Thrown through the parser, caught in Tree::parse.
struct Refused {
  Problem problem;
};

}  // namespace

/// Turns the parser's events into nodes.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Tree& tree) : tree_(tree) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    // At a token that no node begins with, the parser stands still and finds one empty document after another.
    if (!tree_.documents_.empty() && mark.pos == document_start_) {
      throw Refused{{position_of(mark), "not valid YAML: nothing can begin with this"}};
    }
    document_start_ = mark.pos;
    tree_.documents_.push_back(nullptr);
  }
  void OnDocumentEnd() override {
    if (tree_.documents_.back() == nullptr) tree_.documents_.back() = &make({}, Node::Kind::null);
    anchors_.clear();
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node& node = make(position_of(mark), Node::Kind::null);
    remember(anchor, node);
    attach(node, node.position);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end() || std::ranges::find(open_, found->second) != open_.end()) {
      throw Refused{{position_of(mark), "an alias may not stand inside of what it stands for"}};
    }
    attach(*found->second, position_of(mark));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node& node = make(position_of(mark), Node::Kind::scalar);
    node.text = value;
    node.plain = tag == "?";
    if (tag != "?" && tag != "!") node.tag = tag;
    remember(anchor, node);
    attach(node, node.position);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, Node::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, Node::Kind::map);
  }
  void OnMapEnd() override {
    resolve_merges(*open_.back());
    close();
  }

 private:
  Node& make(Position position, Node::Kind kind) {
    Node& node = tree_.nodes_.emplace_back();
    node.position = position;
    node.kind = kind;
    if (tree_.nodes_.size() > Tree::kMaxNodes) throw_too_many(position);
    return node;
  }

  void remember(YAML::anchor_t anchor, Node& node) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = &node;
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, Node::Kind kind) {
    Node& node = make(position_of(mark), kind);
    remember(anchor, node);
    open_.push_back(&node);
    check_depth(0, node.position);
  }

  void close() {
    Node& node = *open_.back();
    open_.pop_back();
    attach(node, node.position);
  }

  /// Puts a finished node where the parser stands.
  void attach(const Node& node, Position position) {
    check_depth(node.height, position);
    if (node.weight > Tree::kMaxNodes) throw_too_many(position);
    if (open_.empty()) {
      tree_.documents_.back() = &node;
      return;
    }
    Node& parent = *open_.back();
    parent.weight += node.weight;
    parent.height = std::max(parent.height, node.height + 1);
    if (parent.weight > Tree::kMaxNodes) throw_too_many(position);
    const bool is_key = parent.kind == Node::Kind::map && parent.keys.size() == parent.values.size();
    (is_key ? parent.keys : parent.values).push_back(&node);
  }

  void check_depth(int height, Position position) const {
    if (static_cast<int>(open_.size()) + height > Tree::kMaxDepth) {
      throw Refused{{position, fmt::format("nested more than {} levels deep", Tree::kMaxDepth)}};
    }
  }

  [[noreturn]] static void throw_too_many(Position position) {
    throw Refused{{position, fmt::format("more than {} values, counting what aliases stand for", Tree::kMaxNodes)}};
  }

  /// `<<: *other` brings the keys of other maps that this one does not have itself.
  static void resolve_merges(Node& map) {
    const auto is_merge = [](const Node* key) { return key->plain && key->text == "<<"; };
    if (std::ranges::none_of(map.keys, is_merge)) return;
    std::vector<const Node*> keys;
    std::vector<const Node*> values;
    std::vector<const Node*> sources;
    std::unordered_set<std::string_view> known;
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      if (!is_merge(map.keys[i])) {
        keys.push_back(map.keys[i]);
        values.push_back(map.values[i]);
        known.insert(map.keys[i]->text);
      } else if (map.values[i]->kind == Node::Kind::sequence) {
        sources.insert(sources.end(), map.values[i]->values.begin(), map.values[i]->values.end());
      } else {
        sources.push_back(map.values[i]);
      }
    }
    for (const Node* source : sources) {
      if (source->kind != Node::Kind::map) {
        throw Refused{{source->position, "`<<` takes a map or a list of maps"}};
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
      for (const Node* node : *nodes) {
        map.weight += node->weight;
        map.height = std::max(map.height, node->height + 1);
      }
    }
  }

  Tree& tree_;
  int document_start_ = 0;
  std::vector<Node*> open_;
  std::unordered_map<YAML::anchor_t, Node*> anchors_;
};

std::optional<Problem> Tree::parse(std::string_view text, Tree& tree) {
  if (text.size() > kMaxBytes) {
    return Problem{{}, fmt::format("the file is {} bytes long; at most {} are read", text.size(), kMaxBytes)};
  }
  std::string normalised;
  if (auto problem = normalise_text(text, normalised)) return problem;
  TreeBuilder builder(tree);
  try {
    std::istringstream stream(normalised);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& refused) {
    return refused.problem;
  } catch (const YAML::Exception& error) {
    if (const auto tab = tab_in_indentation(normalised, position_of(error.mark).line)) {
      return Problem{*tab, "a tab in the indentation: YAML takes spaces only"};
    }
    return Problem{position_of(error.mark), fmt::format("not valid YAML: {}", error.msg)};
  }
  while (!tree.documents_.empty() && tree.documents_.back()->kind == Node::Kind::null) tree.documents_.pop_back();
  return std::nullopt;
}

}  // namespace sluice::yaml
