// Patterns of paths: "/articles/{id}".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::request {

/// A pattern, as routers have them: segments that stand for themselves, {name} for any one of them, {name...} at the
/// end for all that follow, none of them included; before it a method and a space, if only that is meant.
class RoutePattern {
 public:
  /// The error is a sentence without a place.
  [[nodiscard]] static Result<RoutePattern> parse(std::string_view text);
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool matches(std::string_view method, std::span<const std::string_view> segments) const;

 private:
  enum class Kind : std::uint8_t { literal, one, rest };
  struct Segment {
    Kind kind = Kind::literal;
    std::string text;
  };
  std::string text_;
  std::string method_;  ///< empty: any
  std::vector<Segment> segments_;
};

/// A path's segments in the one way that all of its spellings have: escapes of letters, digits and -._~ undone,
/// repeated slashes and one at the end dropped, "." and ".." carried out, without the query. Reusable; views into it
/// are valid until the next read().
class PathSegments {
 public:
  void read(std::string_view target);
  [[nodiscard]] std::span<const std::string_view> segments() const { return segments_; }
  /// Appends them as a path: "/", "/a/b".
  void append_to(std::string& out) const;

 private:
  std::string text_;
  std::vector<std::string_view> segments_;
};

}  // namespace sluice::request
