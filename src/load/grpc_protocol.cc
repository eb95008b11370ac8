#include "load/grpc_protocol.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

namespace sluice::load {
namespace {

constexpr std::size_t kPrefix = 5;  // of a gRPC message: a flag and its size
constexpr std::string_view kPath = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
constexpr std::int32_t kWindow = 1 << 30;  // so that the server is never held up

// RateLimitRequest: domain 1, descriptors 2 (entries 1 (key 1, value 2), hits_addend 3 (value 1)), hits_addend 3.
// RateLimitResponse: overall_code 1 (OK 1, OVER_LIMIT 2), statuses 2 (current_limit 2).
constexpr protozero::pbf_tag_type kFirst = 1;
constexpr protozero::pbf_tag_type kSecond = 2;
constexpr protozero::pbf_tag_type kThird = 3;
constexpr int kOk = 1;
constexpr int kOverLimit = 2;

bool names_limit(protozero::pbf_reader status) { return status.next(kSecond); }

nghttp2_nv field(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));  // NOLINT: nghttp2 only reads
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

std::string_view view(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

void append_rate_limit_request(std::string& out, std::string_view domain, const Descriptors& descriptors,
                               std::uint64_t cost) {
  protozero::pbf_writer request(out);
  request.add_string(kFirst, domain.data(), domain.size());
  for (const auto& descriptor : descriptors) {
    protozero::pbf_writer one(request, kSecond);
    for (const auto& [key, value] : descriptor) {
      protozero::pbf_writer entry(one, kFirst);
      entry.add_string(kFirst, key);
      entry.add_string(kSecond, value);
    }
    if (cost == 0) {
      protozero::pbf_writer nothing(one, kThird);
      nothing.add_uint64(kFirst, 0);
    }
  }
  if (cost > 1) request.add_uint32(kThird, static_cast<std::uint32_t>(cost));
}

Outcome read_rate_limit_response(std::string_view message) {
  Outcome outcome;
  int code = 0;
  try {
    protozero::pbf_reader response(message.data(), message.size());
    while (response.next()) {
      if (response.tag() == kFirst && response.wire_type() == protozero::pbf_wire_type::varint) {
        code = response.get_enum();
      } else if (response.tag() == kSecond && response.wire_type() == protozero::pbf_wire_type::length_delimited) {
        outcome.names_limit |= names_limit(response.get_message());
      } else {
        response.skip();
      }
    }
  } catch (const protozero::exception&) {
    return {.error = "an answer that is no RateLimitResponse"};
  }
  if (code == kOk) {
    outcome.how = Answered::admitted;
  } else if (code == kOverLimit) {
    outcome.how = Answered::denied;
  } else {
    outcome.error = "an answer with overall_code " + std::to_string(code);
  }
  return outcome;
}

struct GrpcProtocol::Call {
  Ticket ticket;
  std::string request;
  std::size_t sent = 0;
  std::string response;
  std::string status;  // HTTP's
  int grpc_status = -1;
  std::string grpc_message;
};

struct GrpcProtocol::Callbacks {
  static Call* call(nghttp2_session* session, std::int32_t stream) {
    return static_cast<Call*>(nghttp2_session_get_stream_user_data(session, stream));
  }
  static int header(nghttp2_session* session, const nghttp2_frame* frame, const std::uint8_t* name,
                    std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t /*flags*/,
                    void* /*user*/) {
    Call* const one = call(session, frame->hd.stream_id);
    if (one == nullptr) return 0;
    const std::string_view key = view(name, name_size);
    const std::string_view text = view(value, value_size);
    if (key == "grpc-status") {
      std::from_chars(text.data(), text.data() + text.size(), one->grpc_status);
    } else if (key == "grpc-message") {
      one->grpc_message = text;
    } else if (key == ":status") {
      one->status = text;
    }
    return 0;
  }
  static int data(nghttp2_session* session, std::uint8_t /*flags*/, std::int32_t stream, const std::uint8_t* bytes,
                  std::size_t size, void* /*user*/) {
    if (Call* const one = call(session, stream)) one->response.append(view(bytes, size));
    return 0;
  }
  static int close(nghttp2_session* session, std::int32_t stream, std::uint32_t /*code*/, void* user) {
    GrpcProtocol& protocol = *static_cast<GrpcProtocol*>(user);
    if (const auto held = protocol.calls_.extract(call(session, stream))) protocol.finish(*held.mapped());
    return 0;
  }
  static ssize_t body(nghttp2_session* /*session*/, std::int32_t /*stream*/, std::uint8_t* room, std::size_t size,
                      std::uint32_t* flags, nghttp2_data_source* source, void* /*user*/) {
    Call& one = *static_cast<Call*>(source->ptr);
    const std::size_t n = std::min(size, one.request.size() - one.sent);
    std::memcpy(room, one.request.data() + one.sent, n);
    one.sent += n;
    if (one.sent == one.request.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(n);
  }
};

void GrpcProtocol::Delete::operator()(nghttp2_session* session) const { nghttp2_session_del(session); }

GrpcProtocol::GrpcProtocol(Owner& owner, std::string authority) : owner_(owner), authority_(std::move(authority)) {}

GrpcProtocol::~GrpcProtocol() = default;

void GrpcProtocol::open() {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::close);
  nghttp2_session* session = nullptr;
  nghttp2_session_client_new(&session, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  session_.reset(session);
  calls_.clear();
  output_.clear();
  fault_.clear();
  const nghttp2_settings_entry no_push{NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, &no_push, 1);
  nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kWindow);
}

void GrpcProtocol::ask(Ticket ticket, std::string_view domain, const Descriptors& descriptors, std::uint64_t cost) {
  auto call = std::make_unique<Call>();
  call->ticket = ticket;
  call->request.assign(kPrefix, '\0');
  append_rate_limit_request(call->request, domain, descriptors, cost);
  const std::size_t size = call->request.size() - kPrefix;
  for (std::size_t i = 0; i < 4; ++i) call->request[1 + i] = static_cast<char>(size >> (24 - 8 * i));
  const std::array<nghttp2_nv, 6> head{field(":method", "POST"),
                                       field(":scheme", "http"),
                                       field(":path", kPath),
                                       field(":authority", authority_),
                                       field("content-type", "application/grpc"),
                                       field("te", "trailers")};
  nghttp2_data_provider provider{};
  provider.source.ptr = call.get();
  provider.read_callback = Callbacks::body;
  const std::int32_t stream =
      nghttp2_submit_request(session_.get(), nullptr, head.data(), head.size(), &provider, call.get());
  if (stream < 0) {
    owner_.answered(ticket, {.error = "no stream: " + std::string(nghttp2_strerror(stream))});
    return;
  }
  const Call* const open = call.get();
  calls_.emplace(open, std::move(call));
}

bool GrpcProtocol::feed(std::string_view bytes) {
  const ssize_t read =
      nghttp2_session_mem_recv(session_.get(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (read < 0) {
    fault_ = "the answer is no HTTP/2: " + std::string(nghttp2_strerror(static_cast<int>(read)));
    return false;
  }
  // What nghttp2 cannot read, it answers by a GOAWAY, and is then done.
  (void)output();
  if (nghttp2_session_want_read(session_.get()) != 0 || nghttp2_session_want_write(session_.get()) != 0) return true;
  fault_ = "the daemon ends the connection, or speaks no HTTP/2 there";
  return false;
}

std::string& GrpcProtocol::output() {
  for (;;) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
    if (size <= 0) return output_;
    output_.append(view(bytes, static_cast<std::size_t>(size)));
  }
}

void GrpcProtocol::finish(Call& call) {
  Outcome outcome;
  if (call.grpc_status > 0) {
    outcome.error =
        "gRPC status " + std::to_string(call.grpc_status) + (call.grpc_message.empty() ? "" : ": " + call.grpc_message);
  } else if (call.grpc_status < 0) {
    outcome.error = call.status.empty() || call.status == "200" ? "a stream that ended without an answer"
                                                                : "HTTP status " + call.status + ", no gRPC";
  } else if (call.response.size() < kPrefix) {
    outcome.error = "an answer without a message";
  } else {
    outcome = read_rate_limit_response(std::string_view(call.response).substr(kPrefix));
  }
  owner_.answered(call.ticket, outcome);
}

}  // namespace sluice::load
