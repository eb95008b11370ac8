// What a listener asks of those who want more than decisions: to change counters, to look at figures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "identity/api_keys.h"

namespace sluice::identity {

/// Whose tokens let in at a listener. Thread-safe; copies share the file of tokens, which outlives them.
struct Guard {
  bool is_on = false;            ///< a token, or a certificate that is trusted, is asked for
  ApiKeyFile* tokens = nullptr;  ///< null: no token lets in

  /// Whose this token is; empty: nobody's, or not any longer. `steady` is the time now: tokens are read again when
  /// their file has changed. Cost and timing: as of ApiKeys::owner_of.
  [[nodiscard]] std::string owner_of(const ApiKeys::Digest& token, std::int64_t steady) const;
  [[nodiscard]] bool knows(std::string_view token, std::int64_t steady) const {
    return !owner_of(ApiKeys::digest_of(token), steady).empty();
  }
};

/// The token of an Authorization field, `Bearer` and a space or more in front; empty: it has none.
[[nodiscard]] std::string_view bearer_of(std::string_view authorization);

}  // namespace sluice::identity
