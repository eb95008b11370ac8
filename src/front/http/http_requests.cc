// The part of HttpConnection that finds out what is asked for, and answers what is no decision.
#include <array>
#include <utility>

#include "front/http/admit_codec.h"
#include "front/http/content_type.h"
#include "front/http/error_json.h"
#include "front/http/http_connection.h"
#include "front/http/json_codec.h"
#include "front/http/json_reader.h"
#include "front/http/throttle_codec.h"

namespace sluice::http {
namespace {

struct FormPath {
  std::string_view path;
  Form form;
};
constexpr std::array<FormPath, 8> kVerbPaths{{{"/v1/refund", Form::refund},
                                              {"/v1/settle", Form::settle},
                                              {"/v1/penalize", Form::penalize},
                                              {"/v1/reset", Form::reset},
                                              {"/v1/ban", Form::ban},
                                              {"/v1/release", Form::release},
                                              {"/v1/commit", Form::commit},
                                              {"/v1/cancel", Form::cancel}}};

constexpr std::string_view kMetricsText = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kIndex =
    "sluice\n"
    "\n"
    "GET /healthcheck   200 OK while this process can decide, else 503 and why not\n"
    "GET /metrics       counters in the Prometheus text format\n";

}  // namespace

HttpConnection::Route HttpConnection::find_route(std::string_view path) {
  const HttpContext& context = environment_.context;
  if (context.pages != nullptr && context.pages->has(path)) return Route::extra;
  if (path == "/healthcheck") return Route::health;
  if (path == "/metrics") return Route::metrics;
  if (path == "/v1/queues") return Route::queues;
  if (environment_.context.role == Role::admin) return path == "/" ? Route::index : Route::none;
  form_ = Form::check;
  if (path == "/v1/check") return Route::check;
  if (context.throttle_deny_status != 0 && path == "/throttle") return Route::throttle;
  if (context.throttle_deny_status != 0 && path == "/health") return Route::health;
  if (path == "/json") return Route::json;
  if (path == "/v1/peek") return Route::peek;
  if (path == "/v1/acquire") return Route::acquire;
  if (path == "/v1/reserve") {
    form_ = Form::reserve;
    return Route::reserve;
  }
  if (path == "/v1/admit") return Route::admit;
  if (path.starts_with(kTicketPath)) return Route::ticket;
  if (auth_form(path) != AuthForm::none) return Route::authorize;
  for (const FormPath& verb : kVerbPaths) {
    if (path != verb.path) continue;
    form_ = verb.form;
    return Route::verb;
  }
  return Route::none;
}

void HttpConnection::serve(Time now) {
  if (!is_admitted(now)) {
    reply_unauthorized("this path asks for a token that is known here (Authorization: Bearer), or a client certificate",
                       "Bearer realm=\"sluice\"", now);
    return;
  }
  switch (route_) {
    case Route::none:
      reply_error(404, "not_found", "there is nothing at this path", now);
      break;
    case Route::check:
    case Route::peek:
    case Route::acquire:
    case Route::reserve:
    case Route::verb:
    case Route::json:
    case Route::admit:
      serve_decision(now);
      break;
    case Route::throttle:
      serve_throttle(now);
      break;
    case Route::ticket:
      serve_ticket(now);
      break;
    case Route::extra:
      serve_extra_page(now);
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

/// May the peer have what it asks for? Decisions are everybody's who reaches the port, and so is the health of the
/// process.
bool HttpConnection::is_admitted(Time now) const {
  const HttpContext& context = environment_.context;
  if (!context.guard.is_on || environment_.is_certified) return true;
  const bool is_open = context.role == Role::admin
                           ? route_ == Route::health
                           : route_ != Route::verb && route_ != Route::metrics && route_ != Route::queues;
  return is_open || context.guard.knows(reader_.head().bearer, now.steady);
}

void HttpConnection::serve_decision(Time now) {
  const bool takes_any_method = route_ == Route::json && environment_.context.envoy;
  if (!takes_any_method && reader_.head().method != Method::post) {
    reply_error(405, "method_not_allowed", "this path takes POST with a JSON body", now, "POST");
    return;
  }
  if (!takes_any_method && !reader_.head().has_length) {
    reply_error(411, "length_required", "send Content-Length or a chunked body", now);
    return;
  }
  DecodeFault fault;
  if (decode(fault)) {
    decide(now);
  } else if (takes_any_method) {
    environment_.metrics.add(metrics::Counter::http_errors);
    reply_bad_request(now);
  } else if (const auto no_json = json_fault(reader_.body())) {
    // What is no JSON may look like a wrong request at its beginning.
    reply_error(400, "invalid_json", *no_json, now);
  } else {
    reply_error(400, "invalid_request", fault.message, now);
  }
}

/// What cannot be read on. In the place of envoyproxy/ratelimit a body that is not taken is a bad request as any other.
void HttpConnection::reply_fault(Time now) {
  const RequestFault& fault = reader_.fault();
  const bool is_of_body = fault.status == 413 || fault.status == 415;
  if (is_of_body && environment_.context.envoy && find_route(reader_.head().path) == Route::json) {
    environment_.metrics.add(metrics::Counter::http_errors);
    reply_bad_request(now);
  } else {
    reply_error(fault.status, "bad_request", fault.message, now);
  }
}

/// As envoyproxy/ratelimit answers whatever goes wrong on /json.
void HttpConnection::reply_bad_request(Time now) {
  environment_.scratch.body = "Bad Request\n";
  reply({.status = 400, .content_type = kText, .allow = {}, .no_store = false}, now);
}

void HttpConnection::serve_throttle(Time now) {
  if (reader_.head().method != Method::post) {
    reply_error(405, "method_not_allowed", "this path takes POST with a JSON body", now, "POST");
    return;
  }
  std::string fault;
  resp::Throttle throttle;
  if (const unsigned status = decode_throttle(reader_.body(), throttle, environment_.scratch.batch.arena(), fault);
      status != 200) {
    reply_error(status, "invalid_request", fault, now);
    return;
  }
  if (throttle_ == nullptr) {
    resp::Step::Owner& owner = *this;
    throttle_ = std::make_unique<resp::ThrottleStep>(owner, environment_.scratch.throttle_limits, environment_.store,
                                                     environment_.metrics);
  }
  if (environment_.context.options.tracer != nullptr) begin_span({}, now);
  if (throttle_->start(throttle, now) == store::Progress::pending) {
    state_ = State::deciding;
  } else {
    answer_throttle(now);
  }
}

void HttpConnection::step_done() {
  resume([this](Time now) { answer_throttle(now); });
}

void HttpConnection::answer_throttle(Time now) {
  if (throttle_->failed()) {
    reply_error(500, "store_unavailable", "the store of the limits cannot be reached", now);
    return;
  }
  if (span_ != nullptr) describe_span();
  std::string& body = environment_.scratch.body;
  body.clear();
  encode_throttle(throttle_->decision(), body);
  const unsigned status = throttle_->decision().allowed ? 200 : environment_.context.throttle_deny_status;
  reply({.status = status, .content_type = kJson, .allow = {}, .no_store = false}, now);
}

bool HttpConnection::decode(DecodeFault& fault) {
  RequestBatch& batch = environment_.scratch.batch;
  is_array_ = false;
  if (route_ == Route::json) return decode_rate_limit_request(reader_.body(), batch, fault);
  if (route_ == Route::admit) {
    if (wait_ == nullptr) wait_ = std::make_shared<QueueWait>();
    return decode_admit(reader_.body(), batch, wait_->message, fault);
  }
  return decode_form(reader_.body(), form_, batch, is_array_, fault);
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

void HttpConnection::serve_extra_page(Time now) {
  std::string& body = environment_.scratch.body;
  const std::string_view type =
      environment_.context.pages->write(reader_.head().path, environment_.policy.get().get(), body);
  reply({.status = 200, .content_type = type, .allow = {}, .no_store = true}, now);
}

void HttpConnection::serve_health(Time now) {
  if (const std::optional<EnvoyWays>& envoy = environment_.context.envoy) {
    const bool healthy =
        !environment_.draining && environment_.store.ready() && envoy->is_healthy(environment_.policy.get().get());
    environment_.scratch.body = healthy ? "OK" : "";
    const unsigned code = healthy ? 200 : 500;
    reply({.status = code, .content_type = kText, .allow = {}, .no_store = true}, now);
    return;
  }
  unsigned status = 503;
  std::string& body = environment_.scratch.body;
  const HttpContext& context = environment_.context;
  const std::string trouble =
      context.role == Role::admin && context.store_trouble ? context.store_trouble() : std::string();
  if (environment_.draining) {
    body = "draining: this process is about to stop\n";
  } else if (context.needs_policy && environment_.policy.get() == nullptr) {
    body = "no policy is loaded\n";
  } else if (!environment_.store.ready()) {
    body = "the store has not been reached yet\n" + trouble;
  } else {
    status = 200;
    body = "OK";
    if (!trouble.empty()) body += "\nlimits are answered by on_store_failure, all or some of them:\n" + trouble;
    const policy::ReloadState* reloads = context.reloads;
    if (const std::string refusal = reloads != nullptr ? reloads->refusal() : std::string(); !refusal.empty()) {
      body += "\nthe policy's files were refused, and what was in force before still is: " + refusal + '\n';
    }
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
    if (const std::string_view absent = absent_field(reader_.kept_head(), query.from); !absent.empty()) {
      reply_error(400, "invalid_request",
                  std::string(absent) + " is absent or empty, by which `from` says that the client's request is told",
                  now);
      return;
    }
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
    if (mapper->is_malformed()) {
      reply_error(400, "invalid_request", mapper->refusal(), now);
      return;
    }
    reply_unauthorized(mapper->refusal(), mapper->challenge(), now);
    return;
  }
  environment_.scratch.headers.clear();
  if (mapper->request().descriptors.empty()) {
    reply_authorized(now);
    return;
  }
  if (environment_.context.options.tracer != nullptr) begin_span(mapper->request().domain, now);
  calls_ = 1;
  pending_ = 0;
  if (call_.start(mapper->request(), policy, environment_.store, now) == store::Progress::pending) {
    pending_ = 1;
    state_ = State::deciding;
  } else {
    answer_decided(now);
  }
}

void HttpConnection::reply_unauthorized(std::string_view message, std::string_view challenge, Time now) {
  environment_.metrics.add(metrics::Counter::http_errors);
  std::string& body = environment_.scratch.body;
  body.clear();
  encode_error(ErrorCode("unauthorized").text(), message, body);
  body += '\n';
  const std::array<front::Header, 1> fields{{{"WWW-Authenticate", std::string(challenge)}}};
  reply({.status = 401, .content_type = kJson, .allow = {}, .no_store = true}, now,
        std::span(fields).first(challenge.empty() ? 0 : 1));
}

}  // namespace sluice::http
