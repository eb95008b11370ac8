// What the parts of the library that are built above HttpLimits need of it.
#pragma once

#include <memory>
#include <optional>

#include "adapter/owned_request.h"
#include "sluice/http_limits.h"

namespace sluice::adapter {

/// What a request is counted by; null: `out` is the answer. Thread-safe.
class LimitsAccess {
 public:
  /// As the policy's `requests:` say.
  [[nodiscard]] static std::shared_ptr<const OwnedRequest> find(HttpLimits& limits, const HttpRequest& request,
                                                                HttpAnswer& out);
  /// By keys of the program's.
  [[nodiscard]] static std::shared_ptr<const OwnedRequest> find(HttpLimits& limits,
                                                                const std::optional<LimiterRequest>& keys,
                                                                HttpAnswer& out);
};

}  // namespace sluice::adapter
