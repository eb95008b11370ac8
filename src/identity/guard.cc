#include "identity/guard.h"

#include "base/ascii.h"

namespace sluice::identity {

std::string Guard::owner_of(const ApiKeys::Digest& token, std::int64_t steady) const {
  if (tokens == nullptr) return {};
  tokens->look(steady);
  return std::string(tokens->get()->owner_of(token));
}

std::string_view bearer_of(std::string_view authorization) {
  constexpr std::string_view scheme = "Bearer ";
  if (!equal_ignoring_case(authorization.substr(0, scheme.size()), scheme)) return {};
  return trim(authorization.substr(scheme.size()));
}

}  // namespace sluice::identity
