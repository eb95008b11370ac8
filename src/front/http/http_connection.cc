#include "front/http/http_connection.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/drain.h"
#include "front/http/content_type.h"
#include "front/http/error_json.h"

namespace sluice::http {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kKeptCapacity = std::size_t{16} * 1024;  ///< what an idle connection may keep of a buffer

/// Removes the first `count` bytes, and gives a large buffer back once it is empty.
void consume(std::string& buffer, std::size_t count) {
  if (count < buffer.size()) {
    buffer.erase(0, count);
    return;
  }
  buffer.clear();
  if (buffer.capacity() > kKeptCapacity) buffer.shrink_to_fit();
}

}  // namespace

HttpConnection::HttpConnection(const Environment& environment, Host& host, Time now, std::string peer)
    : environment_(environment),
      host_(host),
      peer_(std::move(peer)),
      reader_(environment.context.options),
      call_(*this, environment.metrics),
      phase_since_(now.steady),
      taken_since_(now.steady) {}

HttpConnection::~HttpConnection() {
  release_calls();
  end_wait();
}

// ---- input

bool HttpConnection::wants_input() const {
  if (input_ended_) return false;
  if (state_ == State::closing) return lingers_;
  return state_ == State::reading && output().size() < environment_.context.options.max_unsent;
}

void HttpConnection::feed(std::string_view bytes, Time now) {
  if (state_ == State::closing) return;
  if (!input_.empty()) {
    input_.append(bytes);
    work(now);
    return;
  }
  work_on(bytes, now);
  if (state_ != State::closing) input_.assign(bytes);
}

void HttpConnection::end_of_input(Time now) {
  input_ended_ = true;
  lingers_ = false;
  work(now);
}

/// Goes on with what is in input_.
void HttpConnection::work(Time now) {
  std::string_view bytes = input_;
  work_on(bytes, now);
  consume(input_, state_ == State::closing ? input_.size() : input_.size() - bytes.size());
}

void HttpConnection::work_on(std::string_view& bytes, Time now) {
  bool more = true;
  while (more && state_ == State::reading && output().size() < environment_.context.options.max_unsent) {
    switch (reader_.read(bytes)) {
      case RequestReader::Event::need_more:
        more = false;
        break;
      case RequestReader::Event::head:
        head_read(now);
        break;
      case RequestReader::Event::request:
        has_more_ = !bytes.empty();
        serve(now);
        break;
      case RequestReader::Event::fault:
        environment_.metrics.add(metrics::Counter::protocol_errors);
        keep_alive_ = false;
        reply_fault(now);
        break;
    }
    // A client that waits for leave to send its body has sent no byte of it.
    if (state_ == State::reading && reader_.phase() == RequestReader::Phase::body &&
        phase_ != RequestReader::Phase::body && bytes.empty() && reader_.head().expects_continue &&
        reader_.head().has_body) {
      append_output("HTTP/1.1 100 Continue\r\n\r\n", now);
    }
    enter_phase(now);
  }
  if (state_ == State::reading && input_ended_ && !more) close(false);
}

void HttpConnection::head_read(Time now) {
  const RequestHead& head = reader_.head();
  route_ = find_route(head.path);
  keep_alive_ = head.keep_alive;
  const bool has_decisions = route_ == Route::check || route_ == Route::json || route_ == Route::peek ||
                             route_ == Route::verb || route_ == Route::admit || route_ == Route::acquire ||
                             route_ == Route::reserve || route_ == Route::throttle;
  const bool takes_body = head.method == Method::post && has_decisions;
  if (head.expects_continue && head.has_body && !takes_body) {
    keep_alive_ = false;  // its body may follow or not
    serve(now);
  }
}

void HttpConnection::enter_phase(Time now) {
  if (phase_ == reader_.phase()) return;
  phase_ = reader_.phase();
  phase_since_ = now.steady;
}

// ---- answers

void HttpConnection::reply(const Reply& reply, Time now, std::span<const front::Header> fields) {
  environment_.metrics.add(metrics::Counter::http_requests);
  if (span_ != nullptr) end_span(reply.status);
  const std::string& body = environment_.scratch.body;
  const bool last = !keep_alive_ || (drains_ && (!has_more_ || now.steady - drained_since_ >= kDrainGrace.count()));
  ResponseHead head{.status = reply.status,
                    .content_type = reply.content_type,
                    .content_length = body.size(),
                    .date = environment_.scratch.date.text(now.utc),
                    .allow = reply.allow,
                    .connection = ConnectionField::none,
                    .no_store = reply.no_store};
  if (last) {
    head.connection = ConnectionField::close;
  } else if (!reader_.head().http_1_1) {
    head.connection = ConnectionField::keep_alive;
  }
  append_output({}, now);
  append_head(head, fields, output_);
  if (reader_.head().method != Method::head) output_ += body;
  if (last) {
    close(true);
  } else {
    reader_.next();
  }
}

void HttpConnection::reply_error(unsigned status, ErrorCode code, std::string_view message, Time now,
                                 std::string_view allow) {
  environment_.metrics.add(metrics::Counter::http_errors);
  std::string& body = environment_.scratch.body;
  body.clear();
  encode_error(code.text(), message, body);
  body += '\n';
  reply({.status = status, .content_type = kJson, .allow = allow, .no_store = false}, now);
}

void HttpConnection::close(bool lingering) {
  state_ = State::closing;
  lingers_ = lingering && !input_ended_;
}

// ---- output

void HttpConnection::append_output(std::string_view bytes, Time now) {
  if (output_.empty()) taken_since_ = now.steady;
  output_ += bytes;
}

void HttpConnection::sent(std::size_t count, Time now) {
  if (count == 0) return;
  taken_since_ = now.steady;
  output_sent_ += count;
  if (output_sent_ < output_.size()) return;
  consume(output_, output_.size());
  output_sent_ = 0;
  if (state_ == State::closing) phase_since_ = now.steady;  // lingering begins
  if (!input_.empty() || input_ended_) work(now);
}

// ---- time

std::int64_t HttpConnection::held_until() const { return state_ == State::holding ? held_until_ : kNever; }

std::int64_t HttpConnection::deadline() const {
  const HttpOptions& options = environment_.context.options;
  std::int64_t at = kNever;
  if (!output().empty()) at = taken_since_ + options.write_timeout.count();
  if (state_ == State::closing)
    return lingers_ && output().empty() ? phase_since_ + options.linger_timeout.count() : at;
  if (state_ == State::deciding) return at;
  if (state_ == State::holding) return std::min(at, held_until_);
  switch (phase_) {
    case RequestReader::Phase::idle:
      return std::min(at, phase_since_ + (drains_ ? kDrainGrace : options.idle_timeout).count());
    case RequestReader::Phase::head:
      return std::min(at, phase_since_ + options.head_timeout.count());
    case RequestReader::Phase::body:
      return std::min(at, phase_since_ + options.body_timeout.count());
    case RequestReader::Phase::done:
      break;
  }
  return at;
}

void HttpConnection::expire(Time now) {
  if (now.steady < deadline()) return;
  if (state_ == State::holding && now.steady >= held_until_) {
    end_hold(now);
    return;
  }
  if (state_ == State::closing || !output().empty()) {
    aborted_ = true;
    return;
  }
  if (phase_ == RequestReader::Phase::idle) {
    close(false);
    return;
  }
  keep_alive_ = false;
  reply_error(408, "request_timeout",
              phase_ == RequestReader::Phase::head ? "the head of the request did not come in time"
                                                   : "the body of the request did not come in time",
              now);
}

void HttpConnection::drain(Time now) {
  drains_ = true;
  drained_since_ = now.steady;
}

}  // namespace sluice::http
