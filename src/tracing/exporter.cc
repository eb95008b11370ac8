#include "tracing/exporter.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/verb.hpp>
#include <boost/system/error_code.hpp>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "http_client/retry_after.h"

namespace sluice::tracing {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using std::chrono::nanoseconds;

/// That a collector's Retry-After is obeyed, as one that asks for a day has made a mistake.
constexpr std::chrono::minutes kLongestAsked{5};

/// Those of OTLP/HTTP.
bool is_for_later(unsigned status) { return status == 429 || status == 502 || status == 503 || status == 504; }

}  // namespace

Exporter::Exporter(Tracer& tracer, const http_client::Upstream& collector, const http_client::TrustPtr& trust,
                   Sender sender, metrics::Shard& metrics, ExportTimes times)
    : tracer_(tracer),
      sender_(std::move(sender)),
      metrics_(metrics),
      times_(times),
      client_(io_, collector, trust, times.timeout) {
  tracer_.on_spans([this] { boost::asio::post(io_, [this] { spans_wait(); }); });
  boost::asio::post(io_, [this] {
    if (tracer_.waiting() > 0) spans_wait();
  });
  thread_ = std::thread([this] {
    for (;;) {
      try {
        io_.run();
        return;
      } catch (const std::exception& problem) {
        log::error("an exception reached the thread that exports spans", {{"what", problem.what()}});
      }
    }
  });
}

// NOLINTNEXTLINE(bugprone-exception-escape): what may throw is allocating, for a few bytes to stop by.
Exporter::~Exporter() {
  boost::asio::post(io_, [this] { stop(); });
  thread_.join();
  tracer_.on_spans(nullptr);
}

void Exporter::after(nanoseconds wait, void (Exporter::*then)()) {
  timer_.expires_after(wait);
  // What has expired cannot be cancelled any more, though its turn may be over.
  timer_.async_wait([this, then, turn = ++turn_](const error_code& cancelled) {
    if (!cancelled && turn == turn_) (this->*then)();
  });
}

void Exporter::spans_wait() {
  if (state_ == State::idle) gather();
  if (state_ == State::gathering && tracer_.waiting() >= Tracer::kBatch) next();
}

void Exporter::gather() {
  state_ = State::gathering;
  after(times_.gather, &Exporter::next);
}

/// Makes a batch of what waits and sends it.
void Exporter::next() {
  ++turn_;
  timer_.cancel();
  const std::vector<Span> spans = tracer_.take();
  if (spans.empty()) {
    state_ = State::idle;
    if (is_stopping_) io_.stop();
    return;
  }
  batch_ = encode_traces(spans, sender_);
  batch_size_ = spans.size();
  send();
}

void Exporter::send() {
  state_ = State::sending;
  http_client::Request request;
  request.version(11);
  request.method(http::verb::post);
  request.target("/v1/traces");
  request.set(http::field::content_type, "application/x-protobuf");
  request.set(http::field::user_agent, sender_.service + "/" + sender_.version);
  request.body() = batch_;
  client_.send(std::move(request), [this](const http_client::Answer& answer) { answered(answer); });
}

void Exporter::answered(const http_client::Answer& answer) {
  if (!answer.problem.empty()) {
    failed(answer.problem, nanoseconds(0));
    return;
  }
  const unsigned status = answer.response.result_int();
  if (status >= 200 && status <= 299) {
    delivered(answer.response);
  } else if (is_for_later(status)) {
    const auto field = answer.response[http::field::retry_after];
    failed("answered " + std::to_string(status),
           http_client::read_retry_after(std::string_view(field.data(), field.size()), std::chrono::system_clock::now(),
                                         kLongestAsked));
  } else {
    refused("answered " + std::to_string(status));
  }
}

void Exporter::delivered(const http_client::Response& response) {
  const auto all = static_cast<std::uint64_t>(batch_size_);
  const std::uint64_t not_taken = std::min(all, static_cast<std::uint64_t>(refused_of(response.body())));
  metrics_.add(metrics::Counter::spans_exported, all - not_taken);
  metrics_.add(metrics::Counter::spans_refused, not_taken);
  if (std::exchange(failures_, 0) > 0) log::info("spans are taken again by the collector of tracing.endpoint");
  batch_size_ = 0;
  if (is_stopping_ || tracer_.waiting() >= Tracer::kBatch) {
    next();
  } else if (tracer_.waiting() > 0) {
    gather();
  } else {
    state_ = State::idle;
  }
}

/// For ever: the same again would be refused again.
void Exporter::refused(const std::string& why) {
  metrics_.add(metrics::Counter::spans_refused, batch_size_);
  batch_size_ = 0;
  failed(why, nanoseconds(0));
}

void Exporter::failed(const std::string& why, nanoseconds at_least) {
  metrics_.add(metrics::Counter::span_export_failures);
  if (failures_ == 0) {
    log::warn(
        "the collector of tracing.endpoint takes no spans; those that come meanwhile are kept as far as there is room",
        {{"reason", why}});
  }
  if (is_stopping_) {
    io_.stop();
    return;
  }
  constexpr unsigned most_doublings = 16;
  const nanoseconds pause = std::min(times_.longest_pause, times_.pause * (1U << std::min(failures_, most_doublings)));
  ++failures_;
  // Give or take a fifth, so that not all daemons come back together.
  std::uniform_int_distribution<std::int64_t> spread(pause.count() - pause.count() / 5,
                                                     pause.count() + pause.count() / 5);
  state_ = State::pausing;
  after(std::max(at_least, nanoseconds(spread(random_))), batch_size_ == 0 ? &Exporter::next : &Exporter::send);
}

/// What is being sent is waited for, and what waits is sent, for a short time.
void Exporter::stop() {
  is_stopping_ = true;
  farewell_.expires_after(times_.farewell);
  farewell_.async_wait([this](const error_code& cancelled) {
    if (!cancelled) io_.stop();
  });
  if (state_ == State::pausing) {
    io_.stop();
  } else if (state_ != State::sending) {
    next();
  }
}

}  // namespace sluice::tracing
