// What a connection may do, by the password, token or certificate it has given.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "front/resp/resp_options.h"
#include "identity/api_keys.h"

namespace sluice::resp {

/// The password lets one ask for decisions, a token for everything, a certificate change counters. Tokens hold as long
/// as their file has them. `steady` is the time now. Secrets are compared in a time that says nothing of them, and are
/// kept by their SHA-256 at most. Not thread-safe.
class Rights {
 public:
  /// `options` must outlive it.
  Rights(const RespOptions& options, bool is_certified) : options_(options), is_certified_(is_certified) {}

  /// Takes a password (user default) or a token (user default, or its owner). Why it is none, as an error reply,
  /// and what was given before holds; nothing: it is good, and holds alone.
  [[nodiscard]] std::optional<std::string_view> give(std::string_view user, std::string_view secret,
                                                     std::int64_t steady);
  /// As at the beginning.
  void forget();

  /// May it say anything at all?
  [[nodiscard]] bool may_speak(std::int64_t steady) const {
    return options_.password.empty() || has_password_ || has_token(steady);
  }
  /// Why it may not change counters otherwise than by a decision, as an error reply; nothing: it may.
  [[nodiscard]] std::optional<std::string_view> refuse_change(std::int64_t steady) const;

 private:
  [[nodiscard]] bool has_token(std::int64_t steady) const {
    return token_ && !options_.guard.owner_of(*token_, steady).empty();
  }

  const RespOptions& options_;
  const bool is_certified_;
  bool has_password_ = false;
  std::optional<identity::ApiKeys::Digest> token_;
};

}  // namespace sluice::resp
