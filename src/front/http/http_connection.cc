#include "front/http/http_connection.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "front/http/admit_codec.h"
#include "front/http/check_codec.h"
#include "front/http/denial_body.h"
#include "front/http/error_json.h"
#include "front/http/json_codec.h"
#include "front/http/json_reader.h"
#include "front/http/verb_codec.h"

namespace sluice::http {
namespace {

using Problem = limiter::Answer::Problem;
using VerbKind = limiter::CounterVerb::Kind;

constexpr std::array<std::pair<std::string_view, VerbKind>, 4> kVerbPaths{{{"/v1/refund", VerbKind::refund},
                                                                           {"/v1/settle", VerbKind::settle},
                                                                           {"/v1/penalize", VerbKind::penalize},
                                                                           {"/v1/reset", VerbKind::reset}}};

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kProblemJson = "application/problem+json";
constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kMetricsText = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kIndex =
    "sluice\n"
    "\n"
    "GET /healthcheck   200 OK while this process can decide, else 503 and why not\n"
    "GET /metrics       counters in the Prometheus text format\n";
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
        serve(now);
        break;
      case RequestReader::Event::fault:
        environment_.metrics.add(metrics::Counter::protocol_errors);
        keep_alive_ = false;
        reply_error(reader_.fault().status, "bad_request", reader_.fault().message, now);
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
                             route_ == Route::verb || route_ == Route::admit;
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

// ---- requests

HttpConnection::Route HttpConnection::find_route(std::string_view path) {
  if (path == "/healthcheck") return Route::health;
  if (path == "/metrics") return Route::metrics;
  if (path == "/v1/queues") return Route::queues;
  if (environment_.context.role == Role::admin) return path == "/" ? Route::index : Route::none;
  if (path == "/v1/check") return Route::check;
  if (path == "/json") return Route::json;
  if (path == "/v1/peek") return Route::peek;
  if (path == "/v1/admit") return Route::admit;
  if (path.starts_with(kTicketPath)) return Route::ticket;
  if (auth_form(path) != AuthForm::none) return Route::authorize;
  for (const auto& [name, kind] : kVerbPaths) {
    if (path != name) continue;
    verb_ = kind;
    return Route::verb;
  }
  return Route::none;
}

void HttpConnection::serve(Time now) {
  switch (route_) {
    case Route::none:
      reply_error(404, "not_found", "there is nothing at this path", now);
      break;
    case Route::check:
    case Route::peek:
    case Route::verb:
    case Route::json:
    case Route::admit:
      serve_decision(now);
      break;
    case Route::ticket:
      serve_ticket(now);
      break;
    case Route::authorize:
      serve_authorize(now);
      break;
    case Route::health:
    case Route::metrics:
    case Route::queues:
    case Route::index:
      serve_page(now);
      break;
  }
}

void HttpConnection::serve_decision(Time now) {
  if (reader_.head().method != Method::post) {
    reply_error(405, "method_not_allowed", "this path takes POST with a JSON body", now, "POST");
    return;
  }
  if (!reader_.head().has_length) {
    reply_error(411, "length_required", "send Content-Length or a chunked body", now);
    return;
  }
  DecodeFault fault;
  if (decode(fault)) {
    decide(now);
  } else if (const auto no_json = json_fault(reader_.body())) {
    // What is no JSON may look like a wrong request at its beginning.
    reply_error(400, "invalid_json", *no_json, now);
  } else {
    reply_error(400, "invalid_request", fault.message, now);
  }
}

bool HttpConnection::decode(DecodeFault& fault) {
  RequestBatch& batch = environment_.scratch.batch;
  is_array_ = false;
  if (route_ == Route::json) return decode_rate_limit_request(reader_.body(), batch, fault);
  if (route_ == Route::verb) return decode_verb(reader_.body(), verb_, batch, is_array_, fault);
  if (route_ == Route::admit) {
    if (wait_ == nullptr) wait_ = std::make_shared<QueueWait>();
    return decode_admit(reader_.body(), batch, wait_->message, fault);
  }
  return decode_check(reader_.body(), batch, is_array_, fault);
}

void HttpConnection::serve_page(Time now) {
  if (reader_.head().method != Method::get && reader_.head().method != Method::head) {
    reply_error(405, "method_not_allowed", "this path takes GET", now, "GET, HEAD");
    return;
  }
  std::string& body = environment_.scratch.body;
  if (route_ == Route::health) {
    serve_health(now);
  } else if (route_ == Route::queues) {
    serve_queues(now);
  } else if (route_ == Route::metrics) {
    body = environment_.context.registry->expose(environment_.policy.get().get());
    reply({.status = 200, .content_type = kMetricsText, .allow = {}, .no_store = true}, now);
  } else {
    body = kIndex;
    reply({.status = 200, .content_type = kText, .allow = {}, .no_store = false}, now);
  }
}

void HttpConnection::serve_health(Time now) {
  unsigned status = 503;
  std::string& body = environment_.scratch.body;
  if (environment_.draining) {
    body = "draining: this process is about to stop\n";
  } else if (environment_.policy.get() == nullptr) {
    body = "no policy is loaded\n";
  } else if (!environment_.store.ready()) {
    body = "the store has not been reached yet\n";
  } else {
    status = 200;
    body = "OK";
  }
  reply({.status = status, .content_type = kText, .allow = {}, .no_store = true}, now);
}

/// Any method: it is the client's.
void HttpConnection::serve_authorize(Time now) {
  AuthQuery query;
  const AuthForm form = auth_form(reader_.head().path);
  if (form == AuthForm::forwarded) {
    std::string problem;
    const std::optional<AuthQuery> read = read_auth_query(reader_.kept_head().target(), problem);
    if (!read) {
      reply_error(400, "invalid_request", problem, now);
      return;
    }
    query = *read;
  }
  const std::shared_ptr<const policy::Policy>& policy = environment_.policy.get();
  if (policy == nullptr) {
    reply_error(503, "no_policy", "no policy is loaded", now);
    return;
  }
  std::string_view problem;
  request::Mapper* const mapper = environment_.scratch.mappers.find(policy, query.domain, problem);
  if (mapper == nullptr) {
    reply_error(503, "no_requests", problem, now);
    return;
  }
  const request::Rules& rules = mapper->rules();
  allow_status_ = query.allow_status.value_or(rules.allow_status);
  deny_status_ = query.deny_status.value_or(rules.deny_status.value_or(environment_.context.options.deny_status));
  const HttpRequest client = client_request(reader_.kept_head(), form, query.from, peer_);
  if (!mapper->map(client, now)) {
    reply_unauthorized(*mapper, now);
    return;
  }
  environment_.scratch.headers.clear();
  if (mapper->request().descriptors.empty()) {
    reply_authorized(now);
    return;
  }
  calls_ = 1;
  pending_ = 0;
  if (call_.start(mapper->request(), policy, environment_.store, now) == store::Progress::pending) {
    pending_ = 1;
    state_ = State::deciding;
  } else {
    answer_decided(now);
  }
}

void HttpConnection::reply_unauthorized(const request::Mapper& mapper, Time now) {
  environment_.metrics.add(metrics::Counter::http_errors);
  std::string& body = environment_.scratch.body;
  body.clear();
  encode_error(ErrorCode("unauthorized").text(), mapper.refusal(), body);
  body += '\n';
  const std::array<front::Header, 1> fields{{{"WWW-Authenticate", std::string(mapper.challenge())}}};
  reply({.status = 401, .content_type = kJson, .allow = {}, .no_store = true}, now,
        std::span(fields).first(mapper.challenge().empty() ? 0 : 1));
}

// ---- decisions

limiter::Call& HttpConnection::call(std::size_t index) {
  if (index == 0) return call_;
  limiter::Call::Owner& owner = *this;
  while (more_calls_.size() < index) {
    more_calls_.push_back(std::make_unique<limiter::Call>(owner, environment_.metrics));
  }
  return *more_calls_[index - 1];
}

limiter::VerbCall& HttpConnection::verb_call(std::size_t index) {
  limiter::VerbCall::Owner& owner = *this;
  while (verb_calls_.size() <= index) {
    verb_calls_.push_back(std::make_unique<limiter::VerbCall>(owner, environment_.metrics));
  }
  return *verb_calls_[index];
}

void HttpConnection::decide(Time now) {
  const std::span<const Request> requests = environment_.scratch.batch.requests();
  calls_ = requests.size();
  pending_ = 0;
  for (std::size_t i = 0; i < calls_; ++i) {
    if (start(i, requests[i], now) == store::Progress::pending) ++pending_;
  }
  if (pending_ != 0) {
    state_ = State::deciding;
  } else {
    answer_decided(now);
  }
}

store::Progress HttpConnection::start(std::size_t index, Request request, Time now) {
  const std::shared_ptr<const policy::Policy>& policy = environment_.policy.get();
  if (route_ == Route::verb) {
    return verb_call(index).start(request, environment_.scratch.batch.verbs()[index], policy, environment_.store, now);
  }
  request.peek = route_ == Route::peek;
  return call(index).start(request, policy, environment_.store, now);
}

void HttpConnection::answered(limiter::Call&) { one_answered(); }

void HttpConnection::answered(limiter::VerbCall&) { one_answered(); }

void HttpConnection::one_answered() {
  if (--pending_ != 0) return;
  const Time now = environment_.clock.now();
  state_ = State::reading;
  answer_decided(now);
  enter_phase(now);
  work(now);
  host_.resumed();
}

void HttpConnection::release_calls() {
  if (pending_ != 0) {
    for (std::size_t i = 0; i < calls_; ++i) {
      if (route_ == Route::verb) {
        verb_call(i).cancel();
      } else {
        call(i).cancel();
      }
    }
    pending_ = 0;
  }
  constexpr std::size_t kept = 4;
  if (more_calls_.size() > kept) more_calls_.resize(kept);
  if (route_ == Route::verb) verb_calls_.clear();
}

/// True: the answer waits for a leaky bucket's slot. One that would wait for too long is refused.
bool HttpConnection::hold_back(Time now) {
  const bool is_one = route_ == Route::json || route_ == Route::authorize || (route_ == Route::check && !is_array_);
  const std::chrono::nanoseconds hold = is_one ? call_.hold() : std::chrono::nanoseconds(0);
  if (hold.count() == 0) return false;
  if (hold > environment_.context.options.max_hold) {
    call_.refuse_hold();
    return false;
  }
  state_ = State::holding;
  held_until_ = now.steady + hold.count();
  return true;
}

void HttpConnection::end_hold(Time now) {
  state_ = State::reading;
  call_.end_hold();
  answer_decided(now);
  enter_phase(now);
  work(now);
}

std::int64_t HttpConnection::held_until() const { return state_ == State::holding ? held_until_ : kNever; }

void HttpConnection::answer_decided(Time now) {
  for (std::size_t i = 0; i < calls_; ++i) {
    const Problem problem = route_ == Route::verb ? verb_call(i).answer().problem : call(i).answer().problem;
    if (!answer_problem(problem, now)) {
      release_calls();
      return;
    }
  }
  if (hold_back(now)) return;
  if (route_ == Route::json) {
    answer_json(now);
  } else if (route_ == Route::peek) {
    answer_peek(now);
  } else if (route_ == Route::verb) {
    answer_verb(now);
  } else if (route_ == Route::authorize) {
    answer_authorize(now);
  } else if (route_ == Route::admit) {
    answer_admit(now);
  } else {
    answer_check(now);
  }
  release_calls();
}

/// False: there is no decision to tell, and the reason has been told.
bool HttpConnection::answer_problem(Problem problem, Time now) {
  switch (problem) {
    case Problem::none:
      return true;
    case Problem::empty_domain:
      reply_error(400, "invalid_request", "domain: must not be empty", now);
      return false;
    case Problem::no_descriptors:
      reply_error(400, "invalid_request", "descriptors: must not be empty", now);
      return false;
    case Problem::cost_out_of_range:
      reply_error(400, "invalid_request", "the cost must be a whole number from 0 to 1000000000000000", now);
      return false;
    case Problem::no_policy:
      break;
  }
  reply_error(503, "no_policy", "no policy is loaded", now);
  return false;
}

void HttpConnection::render_headers(const limiter::Answer& answer) {
  const HttpOptions& options = environment_.context.options;
  if (answer.allowed && !options.headers_on_allowed) {
    environment_.scratch.headers.clear();
  } else {
    front::render_headers(answer, options.headers, environment_.scratch.headers);
  }
}

void HttpConnection::answer_check(Time now) {
  std::string& body = environment_.scratch.body;
  body.clear();
  if (is_array_) {
    body += '[';
    for (std::size_t i = 0; i < calls_; ++i) {
      if (i != 0) body += ',';
      encode_check(call(i).answer(), body);
    }
    body += ']';
    reply({.status = 200, .content_type = kJson, .allow = {}, .no_store = false}, now);
    return;
  }
  const HttpOptions& options = environment_.context.options;
  const limiter::Answer& answer = call_.answer();
  unsigned status = 200;
  if (!answer.allowed) status = answer.has_figures ? options.deny_status : options.store_failure_status;
  std::string_view type = kJson;
  if (!answer.allowed && reader_.head().wants_problem) {
    type = kProblemJson;
    encode_check_problem(answer, status, body);
  } else {
    encode_check(answer, body);
  }
  render_headers(answer);
  reply({.status = status, .content_type = type, .allow = {}, .no_store = false}, now,
        environment_.scratch.headers.fields());
}

/// What would be decided is no decision, so its status is that of the question.
void HttpConnection::answer_peek(Time now) {
  std::string& body = environment_.scratch.body;
  body.clear();
  bool failed = false;
  for (std::size_t i = 0; i < calls_; ++i) {
    const limiter::Answer& answer = call(i).answer();
    if (i != 0) body += ',';
    if (answer.failure == store::Failure::none) {
      encode_check(answer, body);
    } else {
      failed = true;
      encode_error(ErrorCode("store_unavailable").text(), store::to_text(answer.failure), body);
    }
  }
  reply_items(failed, now);
}

void HttpConnection::answer_verb(Time now) {
  std::string& body = environment_.scratch.body;
  body.clear();
  bool failed = false;
  for (std::size_t i = 0; i < calls_; ++i) {
    if (i != 0) body += ',';
    encode_verb(verb_call(i).answer(), body);
    failed |= verb_call(i).answer().failed;
  }
  reply_items(failed, now);
}

/// Sends the items in scratch.body, of an array or the only one.
void HttpConnection::reply_items(bool failed, Time now) {
  std::string& body = environment_.scratch.body;
  if (is_array_) {
    body.insert(body.begin(), '[');
    body += ']';
  }
  const unsigned status = failed && !is_array_ ? environment_.context.options.store_failure_status : 200;
  reply({.status = status, .content_type = kJson, .allow = {}, .no_store = true}, now);
}

void HttpConnection::answer_json(Time now) {
  const limiter::Answer& answer = call_.answer();
  unsigned status = 200;
  if (!answer.allowed) status = answer.has_figures ? 429 : environment_.context.options.store_failure_status;
  render_headers(answer);
  std::string& body = environment_.scratch.body;
  body.clear();
  encode_rate_limit_response(answer, environment_.scratch.headers, body);
  reply({.status = status, .content_type = kJson, .allow = {}, .no_store = false}, now,
        environment_.scratch.headers.fields());
}

void HttpConnection::answer_authorize(Time now) {
  const limiter::Answer& answer = call_.answer();
  render_headers(answer);
  if (answer.allowed) {
    reply_authorized(now);
    return;
  }
  if (!answer.has_figures) {
    reply_error(environment_.context.options.store_failure_status, "store_unavailable",
                "the store of the limits cannot be reached", now);
    return;
  }
  std::string& body = environment_.scratch.body;
  body.clear();
  const std::string_view type = append_denial_body(answer, deny_status_, reader_.head().wants_problem, body);
  reply({.status = deny_status_, .content_type = type, .allow = {}, .no_store = true}, now,
        environment_.scratch.headers.fields());
}

/// With the fields in scratch.headers.
void HttpConnection::reply_authorized(Time now) {
  environment_.scratch.body.clear();
  reply({.status = allow_status_, .content_type = {}, .allow = {}, .no_store = true}, now,
        environment_.scratch.headers.fields());
}

// ---- answers

void HttpConnection::reply(const Reply& reply, Time now, std::span<const front::Header> fields) {
  environment_.metrics.add(metrics::Counter::http_requests);
  const std::string& body = environment_.scratch.body;
  const bool last = !keep_alive_ || drains_ || environment_.draining;
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
  taken_since_ = now.steady;
  output_sent_ += count;
  if (output_sent_ < output_.size()) return;
  consume(output_, output_.size());
  output_sent_ = 0;
  if (state_ == State::closing) phase_since_ = now.steady;  // lingering begins
  if (!input_.empty() || input_ended_) work(now);
}

// ---- time

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
      return std::min(at, phase_since_ + options.idle_timeout.count());
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

void HttpConnection::drain() {
  drains_ = true;
  if (state_ == State::reading && phase_ == RequestReader::Phase::idle && input_.empty()) close(false);
}

}  // namespace sluice::http
