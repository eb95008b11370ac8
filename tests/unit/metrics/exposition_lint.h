// A strict reader of the Prometheus text format, for tests: says what a scraper would refuse, and a little more.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::metrics::testing {

/// What a page of metrics holds.
struct Page {
  std::vector<std::string> problems;          ///< empty: the page is well-formed
  std::map<std::string, std::string> types;   ///< by family
  std::map<std::string, std::string> values;  ///< by series, as written: name{labels}
};

[[nodiscard]] Page read_page(std::string_view text);

}  // namespace sluice::metrics::testing
