// The names of keys in Redis.
#pragma once

#include <xxhash.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::store::redis {

/// What names depend on beside the key. A view: the prefix must outlive it.
struct KeyNaming {
  constexpr KeyNaming(const char* text) : prefix(text) {}  // NOLINT(google-explicit-constructor): a prefix is one
  KeyNaming(const std::string& text) : prefix(text) {}     // NOLINT(google-explicit-constructor): as above
  constexpr KeyNaming(std::string_view text, std::uint32_t many = 0)  // NOLINT(google-explicit-constructor): as above
      : prefix(text), groups(many) {}

  std::string_view prefix;   ///< holds no brace
  std::uint32_t groups = 0;  ///< of a cluster's keys, so that more of them share a slot; 0: each first value by itself
};

/// Appends "<prefix>{<first value>}<identity><rest>": the first value of `key` (see Charge::key) is the hash tag, so
/// all limits on one user share a slot of a cluster; `rest` is the key from its first '|' on. With groups:
/// "<prefix>{<group>}<first value>}<identity><rest>". Distinct (identity, key) give distinct names, as no identity
/// holds a brace or '|' and no key a brace.
inline void append_redis_key(std::string& out, const KeyNaming& naming, std::string_view identity,
                             std::string_view key) {
  const std::size_t bar = key.find('|');
  const std::string_view first = key.substr(0, bar);
  out += naming.prefix;
  out += '{';
  if (naming.groups != 0) {
    char digits[20];
    const std::uint64_t group = XXH3_64bits(first.data(), first.size()) % naming.groups;
    out.append(digits, std::to_chars(digits, digits + sizeof digits, group).ptr);
    out += '}';
  }
  out += first;
  out += '}';
  out += identity;
  out += key.substr(first.size());
}

}  // namespace sluice::store::redis
