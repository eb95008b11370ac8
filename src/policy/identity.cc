#include "policy/identity.h"

#include "policy/escape.h"

namespace sluice::policy {
namespace {

constexpr PlainBytes kPlain{"-._~:@+,*"};

std::string_view short_name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::token_bucket:
      return ";tb";
    case Algorithm::leaky_bucket:
      return ";lb";
    case Algorithm::fixed_window:
      return ";fw";
    case Algorithm::sliding_window:
      return ";sw";
    case Algorithm::sliding_log:
      return ";sl";
    case Algorithm::concurrency:
      return ";cc";
  }
  return {};
}

std::string bounded(std::string identity) {
  if (identity.size() <= kMaxIdentityBytes) return identity;
  std::string cut = identity.substr(0, kMaxIdentityBytes - kDigestBytes);
  append_digest(identity, cut);
  return cut;
}

}  // namespace

std::string make_identity(std::string_view domain, std::span<const PathStep> path, Algorithm algorithm) {
  std::string identity;
  append_escaped(domain, kPlain, identity);
  for (const PathStep& step : path) {
    identity.push_back('/');
    append_escaped(step.key, kPlain, identity);
    if (step.value.empty()) continue;
    identity.push_back('=');
    append_escaped(step.value, kPlain, identity);
  }
  identity.append(short_name(algorithm));
  return bounded(std::move(identity));
}

std::string make_override_identity(std::string_view domain, std::string_view unit) {
  std::string identity;
  append_escaped(domain, kPlain, identity);
  identity.append("//").append(unit);
  return bounded(std::move(identity));
}

}  // namespace sluice::policy
