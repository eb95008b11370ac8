#include "compat/mogrify.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace sluice::compat {
namespace {

/// Puts the groups in place of $0, $1, …; a number that no group has stays as it is.
std::string filled(std::string_view text, const std::smatch& match) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789", i + 1), text.size());
    if (text[i] != '$' || end == i + 1) {
      out += text[i++];
      continue;
    }
    std::size_t group = match.size();
    std::from_chars(text.data() + i + 1, text.data() + end, group);
    out += group < match.size() ? match[group].str() : std::string(text.substr(i, end - i));
    i = end;
  }
  return out;
}

}  // namespace

Mogrify::Mogrify(const std::vector<config::Mogrifier>& mogrifiers) {
  for (const config::Mogrifier& mogrifier : mogrifiers) {
    mogrifiers_.emplace_back(std::regex(mogrifier.pattern), mogrifier);
  }
}

Tagged Mogrify::operator()(const std::string& name) const {
  for (const auto& [pattern, mogrifier] : mogrifiers_) {
    std::smatch match;
    if (!std::regex_search(name, match, pattern)) continue;
    Tagged tagged{.name = filled(mogrifier.name, match), .tags = {}};
    for (const auto& [tag, value] : mogrifier.tags) {
      tagged.tags += (tagged.tags.empty() ? "" : ",") + tag + ":" + filled(value, match);
    }
    return tagged;
  }
  return {.name = name, .tags = {}};
}

}  // namespace sluice::compat
