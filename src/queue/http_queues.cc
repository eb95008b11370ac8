#include "sluice/http_queues.h"

#include <chrono>
#include <utility>

#include "adapter/limits_access.h"
#include "adapter/render_answer.h"
#include "base/ascii.h"
#include "limiter/wait_for.h"
#include "queue/admission_json.h"
#include "queue/queues_impl.h"

namespace sluice {
namespace {

/// Makes an HTTP answer of what became of a request.
class HttpEnd final : public queue::AdmitEnd {
 public:
  HttpEnd(std::shared_ptr<const HttpQueuesOptions> options, HttpAnswer stopped, bool as_problem, HttpQueues::Done done)
      : options_(std::move(options)), answer_(std::move(stopped)), as_problem_(as_problem), done_(std::move(done)) {}

  void decided(limiter::Call* call) override {
    if (call != nullptr) {
      adapter::render_call(
          *call, options_->limits.answers, options_->limits.max_hold, [this] { return as_problem_; }, answer_);
    }
    tell();
  }
  void over(const limiter::Answer& answer) override { adapter::show_answer(answer, answer_.answer); }
  void admitted(queue::Admission admission) override {
    using Reason = HttpAnswer::Reason;
    if (admission.stored) {
      adapter::render_refusal(Reason::waiting, 202, "", "the request waits", answer_);
      answer_.body.clear();
      queue::encode_admission(admission, answer_.body);
      answer_.headers.add("Location") = options_->ticket_path + admission.ticket;
    } else {
      adapter::render_refusal(Reason::over_limit, options_->limits.answers.deny_status, admission.code,
                              admission.message, answer_);
      const auto seconds = std::chrono::ceil<std::chrono::seconds>(admission.retry_after).count();
      if (options_->limits.answers.retry_after && seconds > 0)
        answer_.headers.add("Retry-After") = std::to_string(seconds);
    }
    tell();
  }

 private:
  void tell() {
    const HttpQueues::Done done = std::move(done_);
    done(answer_);
  }

  const std::shared_ptr<const HttpQueuesOptions> options_;
  HttpAnswer answer_;
  const bool as_problem_;
  HttpQueues::Done done_;
};

}  // namespace

class HttpQueues::Impl {
 public:
  Impl(Limiter& limiter, Queues& queues, HttpQueuesOptions options)
      : limits_(limiter, options.limits),
        queues_(queue::QueuesAccess::impl(queues)),
        options_(std::make_shared<const HttpQueuesOptions>(std::move(options))) {}

  template <typename By>
  Limiter::Pending start(const By& by, const HttpRequest& request, std::string_view body, Done done) {
    HttpAnswer answer;
    auto asked = adapter::LimitsAccess::find(limits_, by, answer);
    if (asked == nullptr) {
      done(answer);
      return {};
    }
    return queues_.start(
        std::move(asked), message_of(request, body),
        std::make_shared<HttpEnd>(options_, limits_.stopped(), adapter::wants_problem(request), std::move(done)));
  }

 private:
  [[nodiscard]] queue::Message message_of(const HttpRequest& request, std::string_view body) const {
    queue::Message message;
    message.method = request.method;
    message.path = request.target;
    message.body = body;
    for (const HeaderField& field : request.headers) {
      if (!options_->key_header.empty() && equal_ignoring_case(field.name, options_->key_header)) {
        message.key = field.value;
      }
      message.headers.emplace_back(field.name, field.value);
    }
    return message;
  }

  HttpLimits limits_;
  queue::QueuesAccess::Impl& queues_;
  const std::shared_ptr<const HttpQueuesOptions> options_;
};

HttpQueues::HttpQueues(Limiter& limiter, Queues& queues, HttpQueuesOptions options)
    : impl_(std::make_shared<Impl>(limiter, queues, std::move(options))) {}

HttpQueues::~HttpQueues() = default;

Limiter::Pending HttpQueues::start(const HttpRequest& request, std::string_view body, Done done) {
  return impl_->start(request, request, body, std::move(done));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): callers give it away, so that it may be kept
Limiter::Pending HttpQueues::start(std::optional<LimiterRequest> keys, const HttpRequest& request,
                                   std::string_view body, Done done) {
  return impl_->start(keys, request, body, std::move(done));
}

void HttpQueues::admit(const HttpRequest& request, std::string_view body, HttpAnswer& out) {
  // Without a time limit there is always an answer.
  out = limiter::wait_for<HttpAnswer>(std::nullopt, [&](Done done) {
          return start(request, body, std::move(done));
        }).value_or(HttpAnswer());
}

}  // namespace sluice
