#include "request/route.h"

#include <algorithm>
#include <cstddef>

#include "request/percent.h"

namespace sluice::request {
namespace {

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

std::string_view take_segment(std::string_view& path) {
  const std::size_t slash = path.find('/');
  const std::string_view segment = path.substr(0, slash);
  path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
  return segment;
}

}  // namespace

Result<RoutePattern> RoutePattern::parse(std::string_view text) {
  const auto wrong = [&](std::string_view what) {
    return Error{"expected a pattern such as /articles/{id} or GET /articles, found '" + std::string(text) +
                 "': " + std::string(what)};
  };
  RoutePattern pattern;
  pattern.text_ = text;
  std::string_view path = text;
  if (const std::size_t space = path.find(' '); space != std::string_view::npos) {
    pattern.method_ = path.substr(0, space);
    if (!is_token(pattern.method_)) return wrong("a method is written in capital letters");
    path = path.substr(space + 1);
  }
  if (!path.starts_with('/')) return wrong("a path begins with a slash");
  if (path.find_first_of("?# ") != std::string_view::npos) return wrong("a path holds no query and no space");
  path.remove_prefix(1);
  while (!path.empty()) {
    const std::string_view segment = take_segment(path);
    if (segment.empty()) {
      if (path.empty()) break;
      return wrong("two slashes in a row never match");
    }
    const bool opens = segment.find('{') != std::string_view::npos;
    const bool closes = segment.find('}') != std::string_view::npos;
    if (!opens && !closes) {
      std::string literal;
      append_normal(segment, literal);
      if (literal == "." || literal == "..") return wrong("a path that leads back never matches");
      pattern.segments_.push_back({Kind::literal, std::move(literal)});
      continue;
    }
    const bool is_parameter =
        segment.size() > 2 && segment.starts_with('{') && segment.find_first_of("{}", 1) == segment.size() - 1;
    if (!is_parameter || !segment.ends_with('}')) return wrong("braces hold a name and are a whole segment");
    const bool is_rest = segment.ends_with("...}");
    if (is_rest && !path.empty()) return wrong("{name...} stands at the end");
    pattern.segments_.push_back({is_rest ? Kind::rest : Kind::one, {}});
  }
  return pattern;
}

bool RoutePattern::matches(std::string_view method, std::span<const std::string_view> segments) const {
  // Servers answer HEAD by what answers GET.
  if (!method_.empty() && method != method_ && !(method_ == "GET" && method == "HEAD")) return false;
  const bool has_rest = !segments_.empty() && segments_.back().kind == Kind::rest;
  const std::size_t fixed = segments_.size() - (has_rest ? 1 : 0);
  if (has_rest ? segments.size() < fixed : segments.size() != fixed) return false;
  for (std::size_t i = 0; i < fixed; ++i) {
    if (segments_[i].kind == Kind::literal && segments_[i].text != segments[i]) return false;
  }
  return true;
}

void PathSegments::read(std::string_view target) {
  text_.clear();
  segments_.clear();
  target = target.substr(0, target.find_first_of("?#"));
  append_normal(target, text_);
  std::string_view path = text_;
  while (!path.empty()) {
    const std::string_view segment = take_segment(path);
    if (segment.empty() || segment == ".") continue;
    if (segment != "..") {
      segments_.push_back(segment);
    } else if (!segments_.empty()) {
      segments_.pop_back();
    }
  }
}

void PathSegments::append_to(std::string& out) const {
  if (segments_.empty()) out += '/';
  for (const std::string_view segment : segments_) {
    out += '/';
    out += segment;
  }
}

}  // namespace sluice::request
