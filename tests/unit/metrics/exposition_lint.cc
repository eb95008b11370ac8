#include "tests/unit/metrics/exposition_lint.h"

#include <regex>

namespace sluice::metrics::testing {
namespace {

const std::regex& help_line() {
  static const std::regex pattern(R"(# HELP ([a-z_][a-z0-9_]*) ([^\\]|\\\\|\\n)+)");
  return pattern;
}
const std::regex& type_line() {
  static const std::regex pattern(R"(# TYPE ([a-z_][a-z0-9_]*) (counter|gauge|histogram))");
  return pattern;
}
const std::regex& sample_line() {
  static const std::regex pattern(
      R"re(([a-z_][a-z0-9_]*)(\{[a-z_][a-z0-9_]*="([^"\\]|\\\\|\\"|\\n)*"(,[a-z_][a-z0-9_]*="([^"\\]|\\\\|\\"|\\n)*")*\})? (-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?|NaN|[+-]Inf))re");
  return pattern;
}

}  // namespace

Page read_page(std::string_view text) {
  Page page;
  const auto problem = [&page](std::string_view line, std::string_view what) {
    page.problems.push_back(std::string(what) + ": " + std::string(line));
  };
  if (!text.empty() && text.back() != '\n') problem("", "the last line does not end");
  std::string family;
  std::string helped;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string line(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::smatch parts;
    if (std::regex_match(line, parts, help_line())) {
      helped = parts[1];
    } else if (std::regex_match(line, parts, type_line())) {
      family = parts[1];
      if (family != helped) problem(line, "no HELP right before");
      if (!page.types.emplace(family, parts[2]).second) problem(line, "a family twice");
      const bool total = family.ends_with("_total");
      if ((parts[2] == "counter") != total) problem(line, "counters, and only they, end in _total");
    } else if (std::regex_match(line, parts, sample_line())) {
      const std::string name = parts[1];
      const bool is_histogram = page.types.contains(family) && page.types.at(family) == "histogram";
      const bool belongs = is_histogram
                               ? name == family + "_bucket" || name == family + "_sum" || name == family + "_count"
                               : name == family;
      if (!belongs) problem(line, "a sample outside its family");
      if (!page.values.emplace(parts[1].str() + parts[2].str(), parts[6]).second) problem(line, "a series twice");
    } else {
      problem(line, "not a line of the format");
    }
  }
  return page;
}

}  // namespace sluice::metrics::testing
