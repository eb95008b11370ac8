// Calls with several messages: health that is watched, and reflection.
#include <algorithm>
#include <array>
#include <string>

#include "front/grpc/connection.h"
#include "front/grpc/health_codec.h"
#include "front/grpc/reflection.h"
#include "front/grpc/wire_fields.h"

namespace sluice::front::grpc {
namespace {

constexpr std::chrono::nanoseconds kLook = std::chrono::seconds(1);

}  // namespace

bool Connection::is_serving() const {
  if (service_.draining || drain_ != Drain::no || !service_.store->ready()) return false;
  const policy::Policy* const policy = service_.policy.get().get();
  return options_.is_healthy ? options_.is_healthy(policy) : policy != nullptr;
}

/// From now on the call is answered by what say() says.
void Connection::begin_stream(Stream& stream) {
  open_.erase(open_.iterator_to(stream));
  streaming_.push_back(stream);
  stream.state = Stream::State::streaming;
  stream.has_trailers = true;
  const std::array fields{kStatus200, kGrpcType};
  submit(stream, fields, true);
}

void Connection::say(Stream& stream, std::string_view message) {
  std::string framed;
  begin_message(framed);
  framed += message;
  end_message(framed);
  stream.response += framed;
  waiting_ += framed.size();
  nghttp2_session_resume_data(session_.get(), stream.id);
}

void Connection::end_stream(Stream& stream) {
  stream.is_ending = true;
  nghttp2_session_resume_data(session_.get(), stream.id);
}

void Connection::watch_health(Stream& stream, std::string_view message) {
  const auto service = decode_health_request(message);
  if (!service) {
    respond_error(stream, StatusCode::invalid_argument, "HealthCheckRequest is not valid protobuf");
    return;
  }
  std::string answer;
  const bool is_known = is_health_service(*service);
  stream.told_serving = is_serving();
  if (is_known) {
    encode_health_response(stream.told_serving, answer);
    next_look_ = std::min(next_look_, later(now_.steady, kLook));
  } else {
    encode_unknown_service(answer);
    stream.method = Method::unknown;  // it stays open, as the protocol has it, and nothing more is said
  }
  release_buffered(stream);
  begin_stream(stream);
  say(stream, answer);
}

void Connection::tell_watchers() {
  const bool serving = is_serving();
  next_look_ = INT64_MAX;
  for (Stream& stream : streaming_) {
    if (stream.method != Method::health_watch || stream.is_ending) continue;
    next_look_ = later(now_.steady, kLook);
    if (stream.told_serving == serving) continue;
    stream.told_serving = serving;
    std::string answer;
    encode_health_response(serving, answer);
    say(stream, answer);
  }
}

/// The connection ends in good order: who watches is told, and watches elsewhere.
void Connection::end_watches() {
  for (Stream& stream : streaming_) {
    if (stream.is_ending) continue;
    if (stream.method == Method::health_watch && stream.told_serving && service_.draining) {
      std::string answer;
      encode_health_response(false, answer);
      say(stream, answer);
    }
    end_stream(stream);
  }
}

/// Answers the whole messages that have come.
void Connection::read_reflection(Stream& stream) {
  std::string& request = stream.request;
  while (request.size() >= kFrameHead) {
    const std::size_t length = message_length(request);
    if (request[0] != 0 || length > options_.max_message || waiting_ > options_.max_waiting) {
      nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_REFUSED_STREAM);
      return;
    }
    if (request.size() < kFrameHead + length) return;
    std::string answer;
    if (!reflect(std::string_view(request).substr(kFrameHead, length), answer)) {
      nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_PROTOCOL_ERROR);
      return;
    }
    if (stream.state == Stream::State::receiving) begin_stream(stream);
    say(stream, answer);
    request.erase(0, kFrameHead + length);
    buffered_ -= kFrameHead + length;
  }
}

}  // namespace sluice::front::grpc
