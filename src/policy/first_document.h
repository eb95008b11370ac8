// The first YAML document of a text, found without reading YAML: envoyproxy/ratelimit looks at no other.
#pragma once

#include <string_view>

namespace sluice::policy {

struct FirstDocument {
  std::string_view text;  ///< the whole text, or up to the line that ends its first document
  int rest_line = 0;      ///< where what stands behind it begins, good or bad, from 1; 0: there is nothing
};

/// Lines of `---` or `...` at their very beginning end a document wherever they stand. Pure.
[[nodiscard]] FirstDocument first_document(std::string_view text);

}  // namespace sluice::policy
