// The same for the requests of an HTTP server: over its limit, a request is stored and answered by 202 with a ticket.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sluice/http_answer.h"
#include "sluice/http_limits.h"
#include "sluice/http_request.h"
#include "sluice/internal/export.h"
#include "sluice/limiter.h"
#include "sluice/queues.h"

namespace sluice {

/// How HttpQueues is made.
struct HttpQueuesOptions {
  // NOLINTBEGIN(readability-redundant-member-init): without it, gcc warns of designated initializers without it
  HttpLimitsOptions limits{};  ///< as those of HttpLimits; `max_hold` does not count: a leaky bucket has no `overflow`
  /// Before the ticket in the field Location of a 202, which is where the program tells of tickets.
  std::string ticket_path = "/v1/tickets/";
  /// Field of the request by whose value requests are kept in order; empty: they are delivered in any order.
  std::string key_header{};
  // NOLINTEND(readability-redundant-member-init)
};

/// Limits for HTTP requests that may wait. What they are counted by is said by the policy's `requests:`, or by the
/// program. The answer is that of HttpLimits but for a request that is stored: then it has the reason `waiting`, status
/// 202, a field Location and a JSON body with ticket, place and expected_in. What cannot wait is denied, and
/// Retry-After says when it might.
///
/// Thread-safe.
class SLUICE_API HttpQueues {
 public:
  /// What `start` calls with the answer, which is the callee's to move from.
  using Done = std::function<void(HttpAnswer& answer)>;

  /// Limiter and queues must outlive it.
  HttpQueues(Limiter& limiter, Queues& queues, HttpQueuesOptions options = {});
  ~HttpQueues();
  HttpQueues(const HttpQueues&) = delete;
  HttpQueues& operator=(const HttpQueues&) = delete;

  /// Replaces `out` by the answer. Blocks as Queues::admit does.
  void admit(const HttpRequest& request, std::string_view body, HttpAnswer& out);
  /// Calls `done` once, perhaps before it returns, on any thread, where it must not block. It must not throw. The views
  /// need not live on.
  Limiter::Pending start(const HttpRequest& request, std::string_view body, Done done);
  /// The same by keys of the program's: nothing means that it does not know who asks (401).
  Limiter::Pending start(std::optional<LimiterRequest> keys, const HttpRequest& request, std::string_view body,
                         Done done);

 private:
  class SLUICE_HIDDEN Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sluice
