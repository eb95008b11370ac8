// The names of keys in Redis.
#pragma once

#include <string>
#include <string_view>

namespace sluice::store::redis {

/// Appends "<prefix>{<first value>}<identity><rest>": the first value of `key` (see Charge::key) is the hash tag, so
/// all limits on one user share a slot of a cluster; `rest` is the key from its first '|' on. Distinct (identity, key)
/// give distinct names, as no identity holds a brace or '|' and no key a brace.
inline void append_redis_key(std::string& out, std::string_view prefix, std::string_view identity,
                             std::string_view key) {
  const std::size_t bar = key.find('|');
  const std::string_view first = key.substr(0, bar);
  out += prefix;
  out += '{';
  out += first;
  out += '}';
  out += identity;
  out += key.substr(first.size());
}

}  // namespace sluice::store::redis
