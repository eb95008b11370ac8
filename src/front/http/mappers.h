// A thread's mappers from requests to descriptors, one for each `requests:` of the policy in force.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "policy/policy.h"
#include "request/mapper.h"

namespace sluice::http {

/// Not thread-safe.
class Mappers {
 public:
  /// The mapper for a domain; an empty one: of the only `requests:` that there is. Null, and `problem` (a literal),
  /// when there is none. Valid as long as the policy is the same.
  [[nodiscard]] request::Mapper* find(const std::shared_ptr<const policy::Policy>& policy, std::string_view domain,
                                      std::string_view& problem);

 private:
  std::shared_ptr<const policy::Policy> policy_;
  std::vector<std::unique_ptr<request::Mapper>> mappers_;
};

}  // namespace sluice::http
