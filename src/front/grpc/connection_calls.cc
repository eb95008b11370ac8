// What is asked for and what is answered: calls of one message each.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "front/grpc/connection.h"
#include "front/grpc/health_codec.h"
#include "front/grpc/wire_fields.h"

namespace sluice::front::grpc {

/// Decisions are everybody's who reaches the port; what changes counters otherwise is not.
bool Connection::asks_for_token(const Stream& stream) const {
  return options_.guard.is_on && !is_certified_ && stream.method == Method::limiter &&
         is_guarded(stream.limiter_method);
}

/// False: the head alone has been answered.
bool Connection::judge_head(Stream& stream) {
  service_.metrics.add(metrics::Counter::grpc_requests);
  if (held_up_ > options_.max_waiting) {
    // Refused, so that the client knows that nothing was charged. Its window updates have to be read on.
    stream.state = Stream::State::answered;
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_REFUSED_STREAM);
  } else if (stream.header_size > options_.max_header_list) {
    respond_http(stream, "431", "the header fields of this request are too large\n");
  } else if (!stream.is_post || !stream.is_grpc) {
    stream.state = Stream::State::foreign;
    return true;
  } else if (stream.method == Method::unknown) {
    respond_error(stream, StatusCode::unimplemented,
                  "unknown method; this server has envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit, "
                  "sluice.v1.Limiter, grpc.health.v1.Health and reflection");
  } else if (stream.is_ambiguous) {
    respond_error(stream, StatusCode::invalid_argument, "more than one `authorization`, of which one is expected");
  } else if (asks_for_token(stream) && !stream.is_admitted) {
    respond_error(stream, StatusCode::unauthenticated,
                  stream.has_token ? "the token in `authorization` is not known here, or not any longer"
                                   : "this method changes counters and asks for a token (metadata `authorization: "
                                     "Bearer TOKEN`) or a client certificate");
  } else if (stream.bad_timeout) {
    respond_error(stream, StatusCode::internal, "malformed grpc-timeout, expected 1 to 8 digits and one of HMSmun");
  } else {
    return true;
  }
  return false;
}

/// The request is complete.
void Connection::dispatch(Stream& stream) {
  if (stream.state == Stream::State::foreign) {
    if (stream.is_post) {
      respond_http(stream, "415", "this port speaks gRPC: content-type application/grpc\n");
      return;
    }
    respond_http(stream, "405", "this port speaks gRPC: POST requests of content-type application/grpc\n");
    return;
  }
  if (stream.method == Method::reflection && stream.state != Stream::State::answered) {
    if (stream.state == Stream::State::receiving) begin_stream(stream);
    end_stream(stream);
    return;
  }
  if (stream.state != Stream::State::receiving) return;
  const std::string_view frame = stream.request;
  if (frame.size() < kFrameHead || frame.size() < kFrameHead + message_length(frame)) {
    respond_error(stream, StatusCode::internal, "the call ended before its message was complete");
    return;
  }
  if (frame[0] == 1) {
    respond_error(stream, StatusCode::unimplemented, "compressed messages are not supported", true);
    return;
  }
  if (frame[0] != 0) {
    respond_error(stream, StatusCode::internal, "the first byte of a message must be 0 or 1");
    return;
  }
  if (stream.timeout >= 0 && later(stream.begun, std::chrono::nanoseconds(stream.timeout)) <= now_.steady) {
    respond_error(stream, StatusCode::deadline_exceeded, "the call's deadline was over before it began");
    return;
  }
  const std::string_view message = frame.substr(kFrameHead);
  if (stream.method == Method::health_check) {
    health_check(stream, message);
  } else if (stream.method == Method::health_watch) {
    watch_health(stream, message);
  } else if (stream.method == Method::limiter) {
    limit(stream, message);
  } else {
    should_rate_limit(stream, message);
  }
}

void Connection::should_rate_limit(Stream& stream, std::string_view message) {
  RequestDecoder& decoder = service_.decoder;
  if (!decoder.decode(message)) {
    respond_error(stream, decoder.code(), decoder.error());
    return;
  }
  if (options_.tracer != nullptr) begin_span(stream, decoder.request());
  begun(stream, stream.call.start(decoder.request(), service_.policy.get(), *service_.store, now_));
}

/// A call of sluice.v1.Limiter.
void Connection::limit(Stream& stream, std::string_view message) {
  LimiterDecoder& decoder = service_.limiter_decoder;
  if (!decoder.decode(stream.limiter_method, message)) {
    respond_error(stream, StatusCode::invalid_argument, decoder.error());
    return;
  }
  if (!decoder.verb()) {
    if (options_.tracer != nullptr) begin_span(stream, decoder.request());
    begun(stream, stream.call.start(decoder.request(), service_.policy.get(), *service_.store, now_));
    return;
  }
  limiter::VerbCall::Owner& owner = stream;
  stream.verb_call = std::make_unique<limiter::VerbCall>(owner, service_.metrics);
  begun(stream,
        stream.verb_call->start(decoder.request(), *decoder.verb(), service_.policy.get(), *service_.store, now_));
}

void Connection::begun(Stream& stream, store::Progress progress) {
  if (progress == store::Progress::answered) {
    if (!hold_back(stream)) respond_decision(stream);
    return;
  }
  stream.state = Stream::State::pending;
  release_buffered(stream);
  if (stream.timeout >= 0) {
    earliest_call_ = std::min(earliest_call_, later(stream.begun, std::chrono::nanoseconds(stream.timeout)));
  }
}

/// True: the answer waits for a leaky bucket's slot, from now on.
bool Connection::hold_back(Stream& stream) {
  if (stream.verb_call != nullptr) return false;
  const std::chrono::nanoseconds hold = stream.call.hold();
  if (hold.count() == 0) return false;
  std::int64_t deadline = later(stream.begun, options_.stream_timeout);
  if (stream.timeout >= 0) deadline = std::min(deadline, later(stream.begun, std::chrono::nanoseconds(stream.timeout)));
  stream.held_until = later(now_.steady, hold);
  if (stream.held_until >= deadline) {
    stream.call.refuse_hold();  // it would come when nobody waits for it any more
    return false;
  }
  stream.state = Stream::State::held;
  earliest_hold_ = std::min(earliest_hold_, stream.held_until);
  release_buffered(stream);
  return true;
}

/// Answers those whose time has come, in the order of their beginning.
void Connection::end_holds() {
  earliest_hold_ = INT64_MAX;
  for (Stream& stream : open_) {
    if (stream.state == Stream::State::decided) {
      if (!hold_back(stream)) respond_decision(stream);
    } else if (stream.state == Stream::State::held && stream.held_until > now_.steady) {
      earliest_hold_ = std::min(earliest_hold_, stream.held_until);
    } else if (stream.state == Stream::State::held) {
      stream.call.end_hold();
      respond_decision(stream);
    }
  }
}

void Connection::call_answered(Stream& stream) {
  if (stream.verb_call != nullptr || stream.call.hold().count() == 0) {
    respond_decision(stream);
  } else {
    // Its time begins when it is known, and what time it is will be said with the next turn: at once.
    stream.state = Stream::State::decided;
    earliest_hold_ = INT64_MIN;
  }
  if (in_turn_ || announced_) return;
  announced_ = true;
  owner_.output_ready();
}

/// False: there is none to tell, and the reason has been told.
bool Connection::respond_problem(Stream& stream, limiter::Answer::Problem problem) {
  using Problem = limiter::Answer::Problem;
  switch (problem) {
    case Problem::none:
      return true;
    case Problem::empty_domain:
      respond_error(stream, StatusCode::invalid_argument, "the domain of a rate limit request must not be empty");
      return false;
    case Problem::no_descriptors:
      respond_error(stream, StatusCode::invalid_argument, "a rate limit request must have descriptors");
      return false;
    case Problem::cost_out_of_range:
      respond_error(stream, StatusCode::invalid_argument,
                    fmt::format("{} is out of range, expected 0 to {}",
                                stream.method == Method::limiter ? "cost" : "hits_addend", kMaxTokens));
      return false;
    case Problem::needs_lease:
      respond_error(stream, StatusCode::invalid_argument,
                    "the request leads to a limit of concurrency, which has nothing to charge, to refund or to "
                    "settle; use sluice.v1.Limiter/Acquire and Release");
      return false;
    case Problem::not_enforced:
      respond_error(stream, StatusCode::invalid_argument,
                    "the request leads to a limit in shadow_mode or quota_mode, which denies nobody by itself and so "
                    "has no bans");
      return false;
    case Problem::too_long_to_hold:
      respond_error(stream, StatusCode::invalid_argument, limiter::kTooLongToHold);
      return false;
    case Problem::no_policy:
      respond_error(stream, StatusCode::unavailable, "no rate limit policy is loaded");
      return false;
  }
  return false;
}

void Connection::respond_decision(Stream& stream) {
  metrics::LimitStats* const stats = service_.metrics.limit_stats();
  if (stats != nullptr && stream.method == Method::should_rate_limit) {
    stats->count_call(static_cast<std::uint64_t>(std::max<std::int64_t>(0, now_.steady - stream.begun)) / 1'000'000);
  }
  const bool is_verb = stream.verb_call != nullptr;
  if (!respond_problem(stream, is_verb ? stream.verb_call->answer().problem : stream.call.answer().problem)) return;
  const limiter::Answer& answer = stream.call.answer();
  if (!is_verb && answer.failure != store::Failure::none) {  // of a peek alone
    respond_error(stream, StatusCode::unavailable, store::to_text(answer.failure));
    return;
  }
  begin_message(stream.response);
  if (is_verb) {
    encode_verb_response(stream.verb_call->answer(), stream.response);
  } else if (stream.method == Method::limiter) {
    encode_check_response(answer, stream.response);
  } else {
    encode_response(answer, options_.headers, service_.headers, stream.response);
  }
  end_message(stream.response);
  respond(stream);
}

void Connection::health_check(Stream& stream, std::string_view message) {
  const auto service = decode_health_request(message);
  if (!service) {
    respond_error(stream, StatusCode::invalid_argument, "HealthCheckRequest is not valid protobuf");
    return;
  }
  if (!is_health_service(*service)) {
    respond_error(stream, StatusCode::not_found, "unknown service");
    return;
  }
  begin_message(stream.response);
  encode_health_response(is_serving(), stream.response);
  end_message(stream.response);
  respond(stream);
}

/// Sends `stream.response` as the one message of a successful call.
void Connection::respond(Stream& stream) {
  if (stream.span != nullptr) end_span(stream, StatusCode::ok);
  stream.has_trailers = true;
  const std::array fields{kStatus200, kGrpcType};
  submit(stream, fields, true);
}

/// Trailers-Only: the answer of a call without a message.
void Connection::respond_error(Stream& stream, StatusCode code, std::string_view message, bool name_encodings) {
  if (stream.span != nullptr) end_span(stream, code);
  service_.metrics.add(metrics::Counter::grpc_errors);
  service_.text.clear();
  append_percent_encoded(message, service_.text);
  const std::array fields{kStatus200, kGrpcType, fixed_field("grpc-status", code_text(code)),
                          copied_field("grpc-message", service_.text), fixed_field("grpc-accept-encoding", "identity")};
  submit(stream, std::span(fields).first(name_encodings ? 5 : 4), false);
}

/// An answer to what is not a gRPC call. `status` and `text` must be literals.
void Connection::respond_http(Stream& stream, std::string_view status, std::string_view text) {
  service_.metrics.add(metrics::Counter::grpc_errors);
  stream.response = text;
  const std::array fields{fixed_field(":status", status), fixed_field("content-type", "text/plain"),
                          fixed_field("allow", "POST")};
  submit(stream, std::span(fields).first(status == "405" ? 3 : 2), !stream.is_head);
}

}  // namespace sluice::front::grpc
