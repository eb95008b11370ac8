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
  using Digest = std::array<unsigned char, 32>;
  /// The SHA-256 of a key.
  [[nodiscard]] static Digest digest_of(std::string_view key);

  /// A line each: the owner's name, spaces, and the key or "sha256:" and the 64 hexadecimal digits of its SHA-256. A
  /// name may have several keys, a key one name. Empty lines and those that begin with # are passed over. A
  /// text without keys is one: the last of them may have been taken away. `noun`: what errors call a key.
  [[nodiscard]] static Result<std::shared_ptr<const ApiKeys>> parse(std::string_view text,
                                                                    std::string_view noun = "key");

  /// The owner's name, empty when nobody has this key. The time depends on the key's length and on how many keys there
  /// are, not on what they are. Cost: a SHA-256 and a comparison for each bit of the number of keys.
  [[nodiscard]] std::string_view owner_of(std::string_view key) const { return owner_of(digest_of(key)); }
  /// The same of a key whose SHA-256 was kept in its place.
  [[nodiscard]] std::string_view owner_of(const Digest& digest) const;
  [[nodiscard]] std::size_t size() const { return keys_.size(); }

 private:
  struct Key {
    Digest digest;
    std::string owner;
  };
  std::vector<Key> keys_;  ///< by digest
};

using ApiKeyFile = WatchedFile<ApiKeys>;

/// Opens a file that has keys to begin with, which errors call `noun`, a literal.
[[nodiscard]] Result<std::shared_ptr<ApiKeyFile>> open_api_keys(const std::string& path, std::string_view noun = "key");

}  // namespace sluice::identity
