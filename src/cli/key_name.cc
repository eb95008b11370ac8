#include "cli/key_name.h"

#include <algorithm>
#include <cstddef>

namespace sluice::cli {

std::optional<KeyName> KeyName::parse(std::string_view name, const store::redis::KeyNaming& naming) {
  if (!name.starts_with(naming.prefix)) return std::nullopt;
  const std::string_view whole = name;
  name.remove_prefix(naming.prefix.size());
  if (!name.starts_with('{')) return std::nullopt;
  name.remove_prefix(1);
  if (naming.groups != 0) {
    const std::size_t end = name.find('}');
    if (end == std::string_view::npos) return std::nullopt;
    name.remove_prefix(end + 1);
  }
  const std::size_t brace = name.find('}');
  if (brace == std::string_view::npos) return std::nullopt;
  const std::string_view rest = name.substr(brace + 1);
  const std::size_t bar = std::min(rest.find('|'), rest.size());
  // Everything in a name is percent-encoded.
  const bool is_plain = std::ranges::all_of(rest, [](char c) { return c > ' ' && c < 0x7f && c != '{' && c != '}'; });
  if (bar == 0 || !is_plain) return std::nullopt;
  KeyName found{.identity = std::string(rest.substr(0, bar)),
                .key = std::string(name.substr(0, brace)) + std::string(rest.substr(bar))};
  std::string again;
  store::redis::append_redis_key(again, naming, found.identity, found.key);
  return again == whole ? std::optional(std::move(found)) : std::nullopt;
}

}  // namespace sluice::cli
