// Tokens of one thread's requests: verified once each, by keys that may change meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "identity/jwt.h"
#include "identity/jwt_cache.h"
#include "identity/watched_file.h"
#include "sluice/clock.h"

namespace sluice::identity {

using KeyFile = WatchedFile<KeySet>;

/// What tokens are checked by; shared by all threads.
struct JwtSource {
  JwtRules rules;
  std::vector<std::shared_ptr<KeyFile>> files;  ///< at least one
  std::size_t cache = 4096;                     ///< most tokens remembered by a thread
};

/// Not thread-safe.
class JwtVerifier {
 public:
  explicit JwtVerifier(std::shared_ptr<const JwtSource> source) : source_(std::move(source)), cache_(source_->cache) {}

  /// Valid until the next call.
  [[nodiscard]] const Jwt& verify(std::string_view token, Time now);

 private:
  /// Keys that have changed end what was verified by the old ones.
  void follow_files(Time now);

  std::shared_ptr<const JwtSource> source_;
  JwtCache cache_;
  std::uint64_t generation_ = 0;  ///< sum of the files'
  std::vector<std::shared_ptr<const KeySet>> keys_;
  std::vector<const KeySet*> views_;
  Jwt verified_;  ///< what is not in the cache
};

}  // namespace sluice::identity
