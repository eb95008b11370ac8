#include "queue/http_deliverer.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "http_client/http_client.h"
#include "http_client/retry_after.h"
#include "queue/retry_pause.h"
#include "queue/stored_headers.h"

namespace sluice::queue {
namespace {

http_client::Request request_of(const Attempt& attempt) {
  const Message& message = *attempt.message;
  http_client::Request request;
  request.version(11);
  request.method_string(message.method);
  request.target(message.path);
  for (const auto& [name, value] : message.headers) {
    if (!tells_of_delivery(name)) request.insert(name, value);  // whoever stored it
  }
  request.set("Idempotency-Key", message.ticket);
  request.set("Sluice-Attempt", std::to_string(attempt.number));
  if (attempt.may_be_duplicate) request.set("Sluice-May-Be-Duplicate", "true");
  if (!message.body_reference.empty()) request.set("Sluice-Body-Reference", message.body_reference);
  request.body() = message.body;
  return request;
}

Outcome outcome_of(const http_client::Answer& answer) {
  Outcome outcome;
  if (!answer.problem.empty()) {
    outcome.kind = Outcome::Kind::retry;
    outcome.reason = answer.problem;
    return outcome;
  }
  const auto status = static_cast<int>(answer.response.result_int());
  outcome.status = status;
  if (status < 200 || status > 299) {
    const bool later = status == 408 || status == 425 || status == 429 || status >= 500;
    outcome.kind = later ? Outcome::Kind::retry : Outcome::Kind::refused;
    outcome.reason = "answered " + std::to_string(status);
    const auto field = answer.response[boost::beast::http::field::retry_after];
    outcome.retry_after = http_client::read_retry_after(std::string_view(field.data(), field.size()),
                                                        std::chrono::system_clock::now(), kLongestAsked);
  }
  return outcome;
}

class HttpDeliverer final : public Deliverer {
 public:
  HttpDeliverer(boost::asio::io_context& io, Upstream upstream, const TrustPtr& trust, std::chrono::nanoseconds timeout)
      : client_(io, std::move(upstream), trust, timeout) {}

  void start(const Attempt& attempt, Done done) override {
    client_.send(request_of(attempt),
                 [done = std::move(done)](const http_client::Answer& answer) { done(outcome_of(answer)); });
  }

 private:
  http_client::HttpClient client_;
};

}  // namespace

std::unique_ptr<Deliverer> make_http_deliverer(boost::asio::io_context& io, Upstream upstream, const TrustPtr& trust,
                                               std::chrono::nanoseconds timeout) {
  return std::make_unique<HttpDeliverer>(io, std::move(upstream), trust, timeout);
}

}  // namespace sluice::queue
