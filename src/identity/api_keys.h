// A table of API keys: whose is one that a request brings?
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "identity/watched_file.h"

namespace sluice::identity {

/// Keys by their SHA-256, so that neither memory nor the time of a look-up tells anything about one. Immutable.
class ApiKeys {
 public:
  /// A line each: the owner's name, spaces, and the key or "sha256:" and the 64 hexadecimal digits of its SHA-256. A
  /// name may have several keys, a key one name. Empty lines and those that begin with # are passed over.
  [[nodiscard]] static Result<std::shared_ptr<const ApiKeys>> parse(std::string_view text);

  /// The owner's name, empty when nobody has this key. The time depends on the key's length and on how many keys there
  /// are, not on what they are. Cost: a SHA-256 and a comparison for each bit of the number of keys.
  [[nodiscard]] std::string_view owner_of(std::string_view key) const;
  [[nodiscard]] std::size_t size() const { return keys_.size(); }

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Key {
    Digest digest;
    std::string owner;
  };
  std::vector<Key> keys_;  ///< by digest
};

using ApiKeyFile = WatchedFile<ApiKeys>;

}  // namespace sluice::identity
