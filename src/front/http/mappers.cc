#include "front/http/mappers.h"

#include <algorithm>

namespace sluice::http {

request::Mapper* Mappers::find(const std::shared_ptr<const policy::Policy>& policy, std::string_view domain,
                               std::string_view& problem) {
  if (policy_ != policy) {
    policy_ = policy;
    mappers_.clear();
    for (const auto& rules : policy->requests()) mappers_.push_back(std::make_unique<request::Mapper>(rules));
  }
  if (domain.empty()) {
    if (mappers_.size() == 1) return mappers_.front().get();
    problem = mappers_.empty() ? "the policy has no `requests`, which say what a request is counted by"
                               : "the policy has several `requests`: name one by ?domain=";
    return nullptr;
  }
  const auto found =
      std::ranges::find_if(mappers_, [&](const auto& mapper) { return mapper->rules().domain == domain; });
  if (found != mappers_.end()) return found->get();
  problem = "the policy has no `requests` for this domain";
  return nullptr;
}

}  // namespace sluice::http
