// The answer of every gRPC floor: fixed figures, no decision, so that only the protocol is measured.
#pragma once

#include "rls.pb.h"

namespace sluice::floors {

inline void decide(const envoy::service::ratelimit::v3::RateLimitRequest& request,
                   envoy::service::ratelimit::v3::RateLimitResponse& response) {
  using envoy::service::ratelimit::v3::RateLimitResponse;
  response.set_overall_code(RateLimitResponse::OK);
  for (int i = 0; i < request.descriptors_size(); ++i) {
    auto* status = response.add_statuses();
    status->set_code(RateLimitResponse::OK);
    status->mutable_current_limit()->set_requests_per_unit(1'000'000);
    status->mutable_current_limit()->set_unit(RateLimitResponse::RateLimit::SECOND);
    status->set_limit_remaining(999'999);
    status->mutable_duration_until_reset()->set_seconds(1);
  }
}

}  // namespace sluice::floors
