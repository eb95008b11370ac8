#include "sluice/http_limits.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "adapter/limits_access.h"
#include "adapter/owned_request.h"
#include "adapter/render_answer.h"
#include "front/http/mappers.h"
#include "limiter/backend.h"
#include "limiter/call.h"
#include "limiter/wait_for.h"
#include "metrics/metrics.h"
#include "policy/snapshot_holder.h"
#include "sluice/clock.h"

namespace sluice {
class HttpLimits::Impl {
 public:
  Impl(Limiter& limiter, HttpLimitsOptions options)
      : backend_(limiter::Access::backend(limiter)), options_(std::move(options)) {
    without_headers_.headers_on_allowed = false;
    without_headers_.retry_after = false;
    without_headers_.rate_limit = false;
    without_headers_.x_rate_limit = false;
  }
  ~Impl() {
    for (Slot& slot : slots_)
      delete slot.worker.load(std::memory_order_acquire);  // NOLINT(cppcoreguidelines-owning-memory)
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // What one check on the caller's thread needs, kept from call to call.
  struct Worker final : limiter::Call::Owner {
    explicit Worker(const policy::SnapshotHolder& policies) : policy(policies) {}
    void answered(limiter::Call& /*call*/) override {}

    metrics::Shard metrics;
    policy::SnapshotReader policy;
    limiter::Call call{*this, metrics};
    http::Mappers mappers;
    std::vector<Entry> entries;
    std::vector<Descriptor> descriptors;
  };
  // A worker for as long as the object lives.
  class Borrowed {
   public:
    explicit Borrowed(Impl& impl) : impl_(impl), worker_(impl.take_worker()) {}
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    ~Borrowed() { impl_.give_back(std::move(worker_)); }
    Worker* operator->() const { return worker_.get(); }
    Worker& operator*() const { return *worker_; }

   private:
    Impl& impl_;
    std::unique_ptr<Worker> worker_;
  };

  [[nodiscard]] bool is_immediate() const { return !backend_.is_shared(); }
  [[nodiscard]] const HttpAnswerOptions& answers(HttpAnswerParts parts = HttpAnswerParts::all) const {
    return parts == HttpAnswerParts::all ? options_.answers : without_headers_;
  }

  // What the policy counts `request` by; null: `out` is the answer.
  const Request* map(Worker& worker, const HttpRequest& request, Time now, HttpAnswer& out) const {
    std::string_view problem = "no policy is loaded";
    const auto& policy = worker.policy.get();
    request::Mapper* const mapper = policy == nullptr ? nullptr : worker.mappers.find(policy, options_.domain, problem);
    if (mapper == nullptr) {
      refuse(HttpAnswer::Reason::unavailable, answers().unavailable_status, "no_requests", problem, out);
      return nullptr;
    }
    if (!mapper->map(request, now)) {
      constexpr unsigned bad_request = 400;
      if (mapper->is_malformed()) {
        refuse(HttpAnswer::Reason::unauthorized, bad_request, "invalid_request", mapper->refusal(), out);
        return nullptr;
      }
      refuse(HttpAnswer::Reason::unauthorized, answers().unauthorized_status, "unauthorized", mapper->refusal(), out);
      if (!mapper->challenge().empty()) out.headers.add("WWW-Authenticate") = mapper->challenge();
      return nullptr;
    }
    if (!mapper->request().descriptors.empty()) return &mapper->request();
    let_pass(out);
    return nullptr;
  }
  // The same by the program's keys; `storage` must outlive the result.
  const Request* read(const std::optional<LimiterRequest>& keys, Worker& worker, Request& storage,
                      HttpAnswer& out) const {
    if (!keys) {
      refuse(HttpAnswer::Reason::unauthorized, answers().unauthorized_status, "unauthorized",
             "it is not known who asks", out);
      return nullptr;
    }
    if (keys->descriptors.empty()) {
      let_pass(out);
      return nullptr;
    }
    std::size_t count = 0;
    for (const auto& descriptor : keys->descriptors) count += descriptor.size();
    worker.entries.clear();
    worker.entries.reserve(count);  // spans of it are taken while it grows
    worker.descriptors.clear();
    for (const auto& descriptor : keys->descriptors) {
      const std::size_t begin = worker.entries.size();
      for (const auto& [key, value] : descriptor) worker.entries.push_back({.key = key, .value = value});
      worker.descriptors.emplace_back().entries = std::span(worker.entries).subspan(begin);
    }
    storage = {.domain = keys->domain, .descriptors = worker.descriptors, .cost = keys->cost, .peek = keys->peek};
    return &storage;
  }

  // `find(worker, now, storage, out)`: what is asked, or null.
  template <typename Find>
  void check_here(Find find, const HttpRequest& http, std::optional<std::chrono::nanoseconds> patience,
                  HttpAnswerParts parts, HttpAnswer& out) {
    const Borrowed worker(*this);
    const Time now = clock_.now();
    Request storage;
    const Request* const request = find(*worker, now, storage, out);
    if (request == nullptr) return;
    (void)worker->call.start(*request, worker->policy.get(), backend_.memory(), now);  // answered at once
    adapter::render_call(
        worker->call, answers(parts), longest_hold(patience), [&] { return adapter::wants_problem(http); }, out);
  }
  [[nodiscard]] std::chrono::nanoseconds longest_hold(std::optional<std::chrono::nanoseconds> patience) const {
    return std::min(options_.max_hold, patience.value_or(options_.max_hold));
  }
  template <typename Find>
  std::shared_ptr<const adapter::OwnedRequest> find_here(Find find, HttpAnswer& out) {
    const Borrowed worker(*this);
    Request storage;
    const Request* const request = find(*worker, clock_.now(), storage, out);
    return request == nullptr ? nullptr : std::make_shared<const adapter::OwnedRequest>(*request);
  }

  // Sends what find_here() found; null: `answer` is the answer.
  Limiter::Pending send(std::shared_ptr<const adapter::OwnedRequest> asked, const HttpRequest& http, HttpAnswer& answer,
                        Done done, std::optional<std::chrono::nanoseconds> patience, HttpAnswerParts parts);

 private:
  static void refuse(HttpAnswer::Reason reason, unsigned status, std::string_view code, std::string_view message,
                     HttpAnswer& out) {
    out.answer = {};
    adapter::render_refusal(reason, status, code, message, out);
  }
  static void let_pass(HttpAnswer& out) {
    out.allowed = true;
    out.reason = HttpAnswer::Reason::none;
    out.status = 200;
    out.hold = std::chrono::nanoseconds(0);
    out.message.clear();
    out.headers.clear();
    out.content_type.clear();
    out.body.clear();
    out.answer = {};
  }

  // A thread finds the worker that it had the last time, if it can: what that has in hand lies in this processor's
  // cache.
  std::atomic<Worker*>& own_slot() {
    static std::atomic<std::size_t> threads{0};
    thread_local const std::size_t kNumber = threads.fetch_add(1, std::memory_order_relaxed);
    return slots_[kNumber % slots_.size()].worker;
  }
  std::unique_ptr<Worker> take_worker() {
    if (Worker* const own = own_slot().exchange(nullptr, std::memory_order_acquire))
      return std::unique_ptr<Worker>(own);
    {
      const std::scoped_lock lock(mutex_);
      if (!workers_.empty()) {
        std::unique_ptr<Worker> worker = std::move(workers_.back());
        workers_.pop_back();
        return worker;
      }
    }
    return std::make_unique<Worker>(backend_.policies());
  }
  void give_back(std::unique_ptr<Worker> worker) noexcept {
    Worker* nobody = nullptr;
    Worker* const given = worker.release();
    if (own_slot().compare_exchange_strong(nobody, given, std::memory_order_release, std::memory_order_relaxed)) return;
    worker.reset(given);
    const std::scoped_lock lock(mutex_);
    try {
      workers_.push_back(std::move(worker));
    } catch (...) {  // without memory for it, the worker goes
      worker.reset();
    }
  }

  limiter::Backend& backend_;
  const HttpLimitsOptions options_;
  HttpAnswerOptions without_headers_ = options_.answers;
  const SystemClock clock_;
  struct alignas(64) Slot {
    std::atomic<Worker*> worker{nullptr};
  };
  std::array<Slot, 16> slots_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> workers_;  // those that found their thread's slot taken
};

namespace {

void render_stopped(const HttpAnswerOptions& options, HttpAnswer& out) {
  adapter::render_refusal(HttpAnswer::Reason::unavailable, options.unavailable_status, "stopped", "the wait was ended",
                          out);
  out.answer = {};
  out.answer.problem = LimiterAnswer::Problem::stopped;
}

// A check on its way to a store elsewhere.
class HttpCheck final : public limiter::Check {
 public:
  HttpCheck(std::shared_ptr<const adapter::OwnedRequest> request, bool as_problem, const HttpAnswerOptions& options,
            std::chrono::nanoseconds longest_hold, HttpLimits::Done done)
      : request_(std::move(request)),
        as_problem_(as_problem),
        options_(options),
        begun_(std::chrono::steady_clock::now()),
        longest_hold_(longest_hold),
        done_(std::move(done)) {}

  [[nodiscard]] const Request& request() const override { return request_->get(); }
  void answered(limiter::Call* call) override {
    HttpAnswer out;
    if (call == nullptr) {
      render_stopped(options_, out);
    } else {
      const auto left = longest_hold_ - (std::chrono::steady_clock::now() - begun_);
      adapter::render_call(*call, options_, left, [this] { return as_problem_; }, out);
    }
    const HttpLimits::Done done = std::move(done_);
    done(out);
  }

 private:
  const std::shared_ptr<const adapter::OwnedRequest> request_;
  const bool as_problem_;
  const HttpAnswerOptions options_;
  const std::chrono::steady_clock::time_point begun_;
  const std::chrono::nanoseconds longest_hold_;
  HttpLimits::Done done_;
};

}  // namespace

std::shared_ptr<const adapter::OwnedRequest> adapter::LimitsAccess::find(HttpLimits& limits, const HttpRequest& request,
                                                                         HttpAnswer& out) {
  HttpLimits::Impl& impl = *limits.impl_;
  return impl.find_here([&](HttpLimits::Impl::Worker& worker, Time now, Request& /*storage*/,
                            HttpAnswer& answer) { return impl.map(worker, request, now, answer); },
                        out);
}

std::shared_ptr<const adapter::OwnedRequest> adapter::LimitsAccess::find(HttpLimits& limits,
                                                                         const std::optional<LimiterRequest>& keys,
                                                                         HttpAnswer& out) {
  HttpLimits::Impl& impl = *limits.impl_;
  return impl.find_here([&](HttpLimits::Impl::Worker& worker, Time /*now*/, Request& storage,
                            HttpAnswer& answer) { return impl.read(keys, worker, storage, answer); },
                        out);
}

HttpLimits::HttpLimits(Limiter& limiter, HttpLimitsOptions options)
    : impl_(std::make_shared<Impl>(limiter, std::move(options))) {}

HttpLimits::~HttpLimits() = default;

Limiter::Pending HttpLimits::Impl::send(std::shared_ptr<const adapter::OwnedRequest> asked, const HttpRequest& http,
                                        HttpAnswer& answer, Done done, std::optional<std::chrono::nanoseconds> patience,
                                        HttpAnswerParts parts) {
  if (asked == nullptr) {
    done(answer);
    return {};
  }
  return backend_.start(std::make_shared<HttpCheck>(std::move(asked), adapter::wants_problem(http), answers(parts),
                                                    longest_hold(patience), std::move(done)));
}

bool HttpLimits::is_immediate() const { return impl_->is_immediate(); }

HttpAnswer HttpLimits::stopped() const {
  HttpAnswer out;
  render_stopped(impl_->answers(), out);
  return out;
}

namespace {

// Replaces `out` by what start(done) gives to `done`, or by what is said when that takes longer than `patience`.
template <typename Start>
void wait_for(std::optional<std::chrono::nanoseconds> patience, const HttpAnswerOptions& options, HttpAnswer& out,
              Start start) {
  if (auto answer = limiter::wait_for<HttpAnswer>(patience, start)) {
    out = *std::move(answer);
    return;
  }
  adapter::render_refusal(HttpAnswer::Reason::unavailable, options.unavailable_status, "deadline",
                          "there was no time for a decision", out);
  out.answer = {};
  out.answer.problem = LimiterAnswer::Problem::deadline;
}

}  // namespace

void HttpLimits::check(const HttpRequest& request, HttpAnswer& out, std::optional<std::chrono::nanoseconds> patience,
                       HttpAnswerParts parts) {
  if (impl_->is_immediate()) {
    impl_->check_here([&](Impl::Worker& worker, Time now, Request& /*storage*/,
                          HttpAnswer& answer) { return impl_->map(worker, request, now, answer); },
                      request, patience, parts, out);
    return;
  }
  wait_for(patience, impl_->answers(), out,
           [&](Done done) { return start(request, std::move(done), patience, parts); });
}

void HttpLimits::check(const std::optional<LimiterRequest>& keys, const HttpRequest& request, HttpAnswer& out,
                       std::optional<std::chrono::nanoseconds> patience, HttpAnswerParts parts) {
  if (impl_->is_immediate()) {
    impl_->check_here([&](Impl::Worker& worker, Time /*now*/, Request& storage,
                          HttpAnswer& answer) { return impl_->read(keys, worker, storage, answer); },
                      request, patience, parts, out);
    return;
  }
  wait_for(patience, impl_->answers(), out,
           [&](Done done) { return start(keys, request, std::move(done), patience, parts); });
}

Limiter::Pending HttpLimits::start(const HttpRequest& request, Done done,
                                   std::optional<std::chrono::nanoseconds> patience, HttpAnswerParts parts) {
  HttpAnswer answer;
  if (impl_->is_immediate()) {
    check(request, answer, patience, parts);
    done(answer);
    return {};
  }
  auto asked = adapter::LimitsAccess::find(*this, request, answer);
  return impl_->send(std::move(asked), request, answer, std::move(done), patience, parts);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): callers give it away, so that it may be kept
Limiter::Pending HttpLimits::start(std::optional<LimiterRequest> keys, const HttpRequest& request, Done done,
                                   std::optional<std::chrono::nanoseconds> patience, HttpAnswerParts parts) {
  HttpAnswer answer;
  if (impl_->is_immediate()) {
    check(keys, request, answer, patience, parts);
    done(answer);
    return {};
  }
  auto asked = adapter::LimitsAccess::find(*this, keys, answer);
  return impl_->send(std::move(asked), request, answer, std::move(done), patience, parts);
}

}  // namespace sluice
