// Limits for the requests of an HTTP server: who asks is read from the request, the answer is ready to be sent.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/http_answer.h"
#include "sluice/http_request.h"
#include "sluice/internal/export.h"
#include "sluice/limiter.h"

namespace sluice {

namespace adapter {
class LimitsAccess;
}  // namespace adapter

/// How HttpLimits is made.
struct HttpLimitsOptions {
  // NOLINTNEXTLINE(readability-redundant-member-init): without it, gcc warns of designated initializers without it
  std::string domain{};         ///< whose `requests:` says what a request is counted by; empty: the only one
  HttpAnswerOptions answers{};  ///< what clients are told
  /// Longest that a request is held back for a leaky bucket's slot (`delay: hold`); what would take longer is denied.
  std::chrono::nanoseconds max_hold = std::chrono::seconds(10);
};

/// How much of an answer is made.
enum class HttpAnswerParts : std::uint8_t {
  all,
  without_headers  ///< where the protocol has no place for them: half of the cost
};

/// A Limiter for HTTP requests. What they are counted by is said by the policy's `requests:` (docs/identity.md), or by
/// the program, with a LimiterRequest. Adapters for frameworks (sluice/adapter) are made of this.
///
/// Thread-safe. In memory a check costs less than a microsecond, on the calling thread.
class SLUICE_API HttpLimits {
 public:
  /// What `start` calls with the answer, which is the callee's to move from.
  using Done = std::function<void(HttpAnswer& answer)>;

  /// The limiter must outlive it. Requests are judged by the policy in force then; where that has no fitting
  /// `requests:`, those that need it are denied (503, code no_requests).
  explicit HttpLimits(Limiter& limiter, HttpLimitsOptions options = {});
  ~HttpLimits();
  HttpLimits(const HttpLimits&) = delete;
  HttpLimits& operator=(const HttpLimits&) = delete;

  /// Replaces `out` by the answer. Blocks as Limiter::check does, but not for HttpAnswer::hold. What would have to be
  /// held back beyond `patience` is denied.
  void check(const HttpRequest& request, HttpAnswer& out,
             std::optional<std::chrono::nanoseconds> patience = std::nullopt,
             HttpAnswerParts parts = HttpAnswerParts::all);
  /// The same by keys of the program's: nothing means that it does not know who asks (401); no descriptors, that
  /// nothing limits the request. Of `request`, only Accept is looked at.
  void check(const std::optional<LimiterRequest>& keys, const HttpRequest& request, HttpAnswer& out,
             std::optional<std::chrono::nanoseconds> patience = std::nullopt,
             HttpAnswerParts parts = HttpAnswerParts::all);

  /// Calls `done` once: before it returns (memory, and what needs no store), or on the limiter's own thread, where it
  /// must not block. It must not throw. The views of `request` need not live on. `patience` is how long the answer
  /// could be held back from now on; it does not end the wait for the store.
  Limiter::Pending start(const HttpRequest& request, Done done,
                         std::optional<std::chrono::nanoseconds> patience = std::nullopt,
                         HttpAnswerParts parts = HttpAnswerParts::all);
  /// The same by keys of the program's.
  Limiter::Pending start(std::optional<LimiterRequest> keys, const HttpRequest& request, Done done,
                         std::optional<std::chrono::nanoseconds> patience = std::nullopt,
                         HttpAnswerParts parts = HttpAnswerParts::all);
  /// What is answered when a wait was ended: 503, with the problem `stopped`.
  [[nodiscard]] HttpAnswer stopped() const;

  /// Does a check answer at once, without waiting for a store elsewhere?
  [[nodiscard]] bool is_immediate() const;

 private:
  friend class adapter::LimitsAccess;
  class SLUICE_HIDDEN Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sluice
