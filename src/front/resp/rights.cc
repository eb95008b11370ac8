#include "front/resp/rights.h"

#include <openssl/crypto.h>

#include <string>

namespace sluice::resp {

std::optional<std::string_view> Rights::give(std::string_view user, std::string_view secret, std::int64_t steady) {
  using identity::ApiKeys;
  const ApiKeys::Digest given = ApiKeys::digest_of(secret);
  const std::string owner = options_.guard.owner_of(given, steady);
  const bool is_default = user == "default";
  if (!owner.empty() && (is_default || user == owner)) {
    has_password_ = false;
    token_ = given;
    return std::nullopt;
  }
  if (options_.password.empty() && options_.guard.tokens == nullptr) {
    return "ERR AUTH was sent, but this server has no password";
  }
  const ApiKeys::Digest right = ApiKeys::digest_of(options_.password);
  const bool is_right = CRYPTO_memcmp(given.data(), right.data(), given.size()) == 0;
  if (options_.password.empty() || !is_default || !is_right) return "WRONGPASS user or password is wrong";
  token_.reset();
  has_password_ = true;
  return std::nullopt;
}

void Rights::forget() {
  has_password_ = false;
  token_.reset();
}

std::optional<std::string_view> Rights::refuse_change(std::int64_t steady) const {
  if (!options_.guard.is_on || is_certified_ || has_token(steady)) return std::nullopt;
  if (token_) return "NOPERM this command changes counters, and the token that was given is known no longer";
  if (has_password_) {
    return "NOPERM this command changes counters, which the password is not enough for: AUTH with a token of "
           "access.token_file, or show a client certificate";
  }
  return "NOAUTH this command changes counters: AUTH with a token of access.token_file first, or show a client "
         "certificate";
}

}  // namespace sluice::resp
