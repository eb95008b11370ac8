// A YAML document as a tree with positions, read within bounds.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::yaml {

/// A place in a text; both count from 1. 0: the file as a whole.
struct Position {
  int line = 0;
  int column = 0;
};

struct Node {
  enum class Kind : std::uint8_t { null, scalar, sequence, map };
  Kind kind = Kind::null;
  bool plain = false;  ///< a scalar without quotes and without a tag
  Position position;
  std::string tag;                  ///< of a scalar, when it has one
  std::string text;                 ///< of a scalar
  std::vector<const Node*> values;  ///< of a sequence, or of a map beside `keys`
  std::vector<const Node*> keys;    ///< of a map, merge keys (`<<`) already resolved
  std::uint64_t weight = 1;         ///< nodes below and including this one, aliases written out
  int height = 1;                   ///< levels below and including this one
};

/// What is wrong with a text, and where.
struct Problem {
  Position position;
  std::string message;
};

/// The documents of one text, without trailing empty ones. Owns their nodes.
class Tree {
 public:
  /// Bounds that keep a hostile text from taking the process down. A policy of a hundred thousand limits is below them.
  static constexpr std::size_t kMaxBytes = 8U << 20U;
  static constexpr int kMaxDepth = 200;
  static constexpr std::uint64_t kMaxNodes = 1'000'000;

  /// Reads UTF-8 text; a byte order mark and any line ends are understood. Never throws.
  [[nodiscard]] static std::optional<Problem> parse(std::string_view text, Tree& tree);

  /// Roots, one a document.
  [[nodiscard]] const std::vector<const Node*>& documents() const { return documents_; }

 private:
  friend class TreeBuilder;
  std::deque<Node> nodes_;
  std::vector<const Node*> documents_;
};

/// A scalar as YAML 1.1 reads it (the way of yaml.v2): yes, no, on, off and y, n are booleans; 0x, 0o, 0b and a leading
/// 0 make other bases; digits may be grouped by `_`.
struct Scalar {
  enum class Type : std::uint8_t { null, boolean, integer, floating, string };
  Type type = Type::string;
  bool boolean = false;
  bool negative = false;
  std::uint64_t magnitude = 0;  ///< of an integer
};
[[nodiscard]] Scalar resolve_scalar(const Node& node);

}  // namespace sluice::yaml
