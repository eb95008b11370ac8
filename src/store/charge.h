// What a store is asked to count.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "sluice/limit.h"

namespace sluice::store {

/// A limit with an identity: what all its keys have in common. Immutable once made; a policy snapshot owns it.
struct CountedLimit {
  Limit numbers;
  /// Domain and path in the policy, as printable text without spaces or braces; unique in the process for one limit,
  /// and the same after a reload that changed only numbers, so that the state is kept.
  std::string identity;
  /// Small number that stands for `identity` for the life of the process (see limit_ids.h).
  std::uint32_t id = 0;
  OnStoreFailure on_store_failure = OnStoreFailure::local;
};

/// How a charge that does not fit acts on its request.
enum class Enforcement : std::uint8_t {
  enforce,  ///< denies the request
  shadow,   ///< never denies; it is charged when it fits and the request is allowed
  quota,    ///< denies only when every quota charge of the request does not fit
};

/// One (limit, key, cost). `limit` and `key` must outlive the call to the store and, when it is pending, its
/// completion.
struct Charge {
  const CountedLimit* limit = nullptr;
  /// The descriptor's values, encoded by policy/key_encoding: printable, no spaces; the first value stands before the
  /// first
  /// '|'. At most 200 bytes.
  std::string_view key;
  std::uint64_t cost = 1;  ///< 0 … kMaxTokens
  Enforcement enforcement = Enforcement::enforce;
};

}  // namespace sluice::store
