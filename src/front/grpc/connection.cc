#include "front/grpc/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "front/grpc/reflection.h"
#include "front/grpc/timeout.h"
#include "front/grpc/wire_fields.h"

namespace sluice::front::grpc {
namespace {

constexpr std::uint32_t kStreamWindow = 128 * 1024;
constexpr std::int32_t kConnectionWindow = 16 * 1024 * 1024;
constexpr std::chrono::nanoseconds kDrainStep = std::chrono::seconds(1);
constexpr std::array<std::uint8_t, 8> kDrainPing = {'s', 'l', 'u', 'i', 'c', 'e', 'd', 'r'};
constexpr FloodGuard::Budget kControlFrames{.most = 1000, .per_second = 100, .per_call = 10};
// A client that gives up on slow calls resets each of them, so this is about as much as one can ask for.
constexpr FloodGuard::Budget kResets{.most = 10'000, .per_second = 1'000, .per_call = 1};

constexpr std::string_view kShouldRateLimit = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
constexpr std::string_view kHealthCheck = "/grpc.health.v1.Health/Check";
constexpr std::string_view kHealthWatch = "/grpc.health.v1.Health/Watch";

Method find_method(std::string_view path) {
  if (path == kShouldRateLimit) return Method::should_rate_limit;
  if (path == kHealthCheck) return Method::health_check;
  if (path == kHealthWatch) return Method::health_watch;
  if (is_reflection(path)) return Method::reflection;
  return Method::unknown;
}

/// application/grpc, application/grpc+proto, either with parameters.
bool is_grpc_type(std::string_view type) {
  constexpr std::string_view plain = "application/grpc";
  constexpr std::string_view proto = "+proto";
  if (!type.starts_with(plain)) return false;
  type.remove_prefix(plain.size());
  if (type.starts_with(proto)) type.remove_prefix(proto.size());
  return type.empty() || type.front() == ';' || type.front() == ' ';
}

struct OptionDeleter {
  void operator()(nghttp2_option* option) const { nghttp2_option_del(option); }
};
struct CallbacksDeleter {
  void operator()(nghttp2_session_callbacks* callbacks) const { nghttp2_session_callbacks_del(callbacks); }
};

std::unique_ptr<nghttp2_option, OptionDeleter> make_option() {
  nghttp2_option* option = nullptr;
  nghttp2_option_new(&option);
  nghttp2_option_set_no_closed_streams(option, 1);
  // Of what is said here, few fields are not in HPACK's own table.
  nghttp2_option_set_max_deflate_dynamic_table_size(option, 512);
  // FloodGuard counts resets, with a budget that calls refill.
  nghttp2_option_set_stream_reset_rate_limit(option, UINT32_MAX, UINT32_MAX);
  return std::unique_ptr<nghttp2_option, OptionDeleter>(option);
}

}  // namespace

/// nghttp2's C callbacks, each a member function of the connection.
struct Connection::Callbacks {
  static Connection& self(void* user) { return *static_cast<Connection*>(user); }

  static int begin_frame(nghttp2_session*, const nghttp2_frame_hd* head, void* user) {
    return self(user).on_begin_frame(*head);
  }
  static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    return self(user).on_begin_headers(*frame);
  }
  static int header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
    return self(user).on_header(*frame, {reinterpret_cast<const char*>(name), name_size},
                                {reinterpret_cast<const char*>(value), value_size});
  }
  static int data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes, std::size_t size,
                  void* user) {
    return self(user).on_data(id, {reinterpret_cast<const char*>(bytes), size});
  }
  static int frame(nghttp2_session*, const nghttp2_frame* frame, void* user) { return self(user).on_frame(*frame); }
  static int invalid_frame(nghttp2_session*, const nghttp2_frame* frame, int, void* user) {
    return self(user).on_invalid_frame(*frame);
  }
  static int close(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
    self(user).on_close(id);
    return 0;
  }
  static ssize_t body(nghttp2_session*, std::int32_t, std::uint8_t* room, std::size_t size, std::uint32_t* flags,
                      nghttp2_data_source* source, void* user) {
    return self(user).read_body(*static_cast<Stream*>(source->ptr), {room, size}, *flags);
  }

  static const nghttp2_session_callbacks& table() {
    static const auto kMade = [] {
      nghttp2_session_callbacks* callbacks = nullptr;
      nghttp2_session_callbacks_new(&callbacks);
      nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, begin_frame);
      nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
      nghttp2_session_callbacks_set_on_header_callback(callbacks, header);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data);
      nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame);
      nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, invalid_frame);
      nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, close);
      return std::unique_ptr<nghttp2_session_callbacks, CallbacksDeleter>(callbacks);
    }();
    return *kMade;
  }
};

Connection::Connection(Owner& owner, Service& service, const GrpcOptions& options, Time now, bool is_certified)
    : owner_(owner),
      service_(service),
      options_(options),
      memory_(service.frame_room),
      is_certified_(is_certified),
      now_(now),
      control_frames_(kControlFrames, now.steady),
      resets_(kResets, now.steady),
      born_(now.steady),
      last_call_(now.steady) {
  static const auto kOption = make_option();
  nghttp2_session* session = nullptr;
  nghttp2_mem memory = memory_.functions();
  if (nghttp2_session_server_new3(&session, &Callbacks::table(), this, kOption.get(), &memory) != 0) {
    throw std::bad_alloc();
  }
  session_.reset(session);
  const std::array settings{
      nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options.max_streams},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
                             static_cast<std::uint32_t>(options.max_header_list)},
  };
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
}

Connection::~Connection() { abandon(); }

void Connection::abandon() {
  last_ = nullptr;
  while (!open_.empty()) {
    Stream& stream = open_.front();
    open_.pop_front();
    if (stream.state == Stream::State::pending) stream.cancel();
    service_.streams.give_back(stream);
  }
  while (!streaming_.empty()) {
    Stream& stream = streaming_.front();
    streaming_.pop_front();
    service_.streams.give_back(stream);
  }
}

bool Connection::feed(std::span<const std::uint8_t> bytes, Time now) {
  now_ = now;
  if (dead_) return false;
  in_turn_ = true;
  held_up_ = waiting_;
  const ssize_t taken = nghttp2_session_mem_recv(session_.get(), bytes.data(), bytes.size());
  in_turn_ = false;
  tally_.add(bytes);
  if (taken < 0 && !dead_) {
    service_.metrics.add(metrics::Counter::protocol_errors);
    // Flooded: more PING and SETTINGS to acknowledge at once than nghttp2 bears.
    end(taken == NGHTTP2_ERR_FLOODED ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR);
  } else if (!bears_frames() && !dead_) {
    service_.metrics.add(metrics::Counter::protocol_errors);
    end(NGHTTP2_ENHANCE_YOUR_CALM);
  }
  return !dead_ && nghttp2_session_want_read(session_.get()) != 0;
}

void Connection::take_output(std::string& out, std::size_t limit) {
  announced_ = false;
  while (out.size() < limit) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
    if (size > 0) {
      out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
      continue;
    }
    if (size < 0) dead_ = true;
    if (size < 0 || early_.empty()) return;
    // The client is still sending what nobody will read: tell it to stop, once it has the whole answer.
    const std::size_t before = early_.size();
    std::erase_if(early_, [this](std::int32_t id) {
      const int local_closed = nghttp2_session_get_stream_local_close(session_.get(), id);
      if (local_closed == 1) nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
      return local_closed != 0;
    });
    if (early_.size() == before) return;
  }
}

bool Connection::finished() const {
  if (nghttp2_session_want_write(session_.get()) != 0) return false;
  return dead_ || nghttp2_session_want_read(session_.get()) == 0;
}

void Connection::drain(Time now) {
  if (drain_ != Drain::no || dead_) return;
  now_ = now;
  end_watches();
  drain_ = Drain::announced;
  drain_deadline_ = later(now.steady, kDrainStep);
  nghttp2_submit_shutdown_notice(session_.get());
  nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, kDrainPing.data());
}

void Connection::finish_drain() {
  if (drain_ != Drain::announced) return;
  drain_ = Drain::done;
  drain_deadline_ = INT64_MAX;
  nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_.get()),
                        NGHTTP2_NO_ERROR, nullptr, 0);
}

void Connection::end(std::uint32_t error) {
  nghttp2_session_terminate_session(session_.get(), error);
  dead_ = true;
}

/// Takes from the budget all frames just fed that did not bring a call on.
bool Connection::bears_frames() {
  const std::int64_t frames = tally_.others() + tally_.data() - call_data_;
  tally_.reset();
  call_data_ = 0;
  return control_frames_.take(now_.steady, frames);
}

/// For callbacks: ends the connection and makes nghttp2 stop.
int Connection::fail(std::uint32_t error) {
  service_.metrics.add(metrics::Counter::protocol_errors);
  end(error);
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

std::int64_t Connection::next_deadline() const {
  if (dead_) return INT64_MAX;
  std::int64_t next = std::min({earliest_call_, earliest_hold_, drain_deadline_, next_look_});
  if (!greeted_) next = std::min(next, later(born_, options_.handshake_timeout));
  if (!open_.empty()) next = std::min(next, later(open_.front().begun, options_.stream_timeout));
  if (drain_ == Drain::no) {
    next = std::min(next, later(born_, options_.max_age));
    if (open_.empty() && streaming_.empty()) next = std::min(next, later(last_call_, options_.idle_timeout));
  }
  return next;
}

void Connection::expire(Time now) {
  if (dead_) return;
  now_ = now;
  if (!greeted_ && now.steady >= later(born_, options_.handshake_timeout)) {
    end(NGHTTP2_SETTINGS_TIMEOUT);
    return;
  }
  if (now.steady >= drain_deadline_) finish_drain();

  if (now.steady >= earliest_hold_) end_holds();
  if (now.steady >= earliest_call_) {
    earliest_call_ = INT64_MAX;
    for (Stream& stream : open_) {
      if (stream.state != Stream::State::pending || stream.timeout < 0) continue;
      const std::int64_t deadline = later(stream.begun, std::chrono::nanoseconds(stream.timeout));
      if (deadline > now.steady) {
        earliest_call_ = std::min(earliest_call_, deadline);
        continue;
      }
      stream.cancel();
      respond_error(stream, StatusCode::deadline_exceeded, "the store did not answer before the call's deadline");
    }
  }

  for (std::size_t left = open_.size(); left > 0; --left) {
    Stream& stream = open_.front();
    if (now.steady < later(stream.begun, options_.stream_timeout)) break;
    if (stream.state == Stream::State::pending) stream.cancel();
    stream.state = Stream::State::answered;
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_CANCEL);
    // It closes once that is sent; should the output be stuck, this looks again later.
    stream.begun = now.steady;
    open_.pop_front();
    open_.push_back(stream);
  }

  if (now.steady >= next_look_) tell_watchers();
  const bool is_idle = open_.empty() && streaming_.empty() && now.steady >= later(last_call_, options_.idle_timeout);
  if (is_idle || now.steady >= later(born_, options_.max_age)) drain(now);
}

Stream* Connection::find(std::int32_t id) {
  if (last_ == nullptr || last_->id != id) {
    last_ = static_cast<Stream*>(nghttp2_session_get_stream_user_data(session_.get(), id));
  }
  return last_;
}

/// nghttp2 ignores header fields for a stream that it has forgotten. That is right where this end closed it and the
/// client could not know; otherwise the client is mistaken and should hear of it. (For DATA there is no such callback.)
int Connection::on_begin_frame(const nghttp2_frame_hd& head) {
  const std::int32_t id = head.stream_id;
  if (head.type != NGHTTP2_HEADERS || id > newest_id_ || id % 2 == 0) return 0;
  if (find(id) != nullptr) return 0;
  if (abandoned_.contains(id)) return control_frames_.take(now_.steady) ? 0 : fail(NGHTTP2_ENHANCE_YOUR_CALM);
  return fail(ended_.contains(id) ? NGHTTP2_STREAM_CLOSED : NGHTTP2_PROTOCOL_ERROR);
}

int Connection::on_begin_headers(const nghttp2_frame& frame) {
  header_block_ = 0;
  if (frame.hd.type != NGHTTP2_HEADERS || frame.headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  Stream& stream = service_.streams.take();
  stream.connection = this;
  stream.id = newest_id_ = frame.hd.stream_id;
  stream.begun = now_.steady;
  open_.push_back(stream);
  last_ = &stream;
  last_call_ = now_.steady;
  nghttp2_session_set_stream_user_data(session_.get(), stream.id, &stream);
  return 0;
}

int Connection::on_header(const nghttp2_frame& frame, std::string_view name, std::string_view value) {
  constexpr std::size_t overhead = 32;
  header_block_ += name.size() + value.size() + overhead;
  if (header_block_ > options_.max_connection_headers) return fail(NGHTTP2_ENHANCE_YOUR_CALM);
  if (frame.headers.cat != NGHTTP2_HCAT_REQUEST) return 0;  // the client's trailers say nothing to us
  Stream* const stream = find(frame.hd.stream_id);
  if (stream == nullptr) return 0;
  stream->header_size = header_block_;
  switch (name.size()) {
    case 5:
      if (name == ":path") {
        stream->method = find_method(value);
        if (const auto method = find_limiter_method(value); method && stream->method == Method::unknown) {
          stream->method = Method::limiter;
          stream->limiter_method = *method;
        }
      }
      break;
    case 7:
      if (name == ":method") {
        stream->is_post = value == "POST";
        stream->is_head = value == "HEAD";
      }
      break;
    case 10:
    case 11:
      if (options_.tracer != nullptr) take_trace_field(*stream, name, value);
      break;
    case 12:
      if (name == "content-type") {
        stream->is_grpc = is_grpc_type(value);
      } else if (name == "grpc-timeout") {
        if (const auto timeout = parse_timeout(value); timeout && stream->timeout < 0) {
          stream->timeout = timeout->count();
        } else {
          stream->bad_timeout = true;
        }
      }
      break;
    case 13:
      // The path stands before it, as HTTP/2 has it.
      if (name == "authorization" && stream->method == Method::limiter) {
        if (std::exchange(stream->has_authorization, true)) stream->is_ambiguous = true;
        if (!asks_for_token(*stream)) break;
        const std::string_view token = identity::bearer_of(value);
        stream->has_token = !token.empty();
        stream->is_admitted = stream->has_token && options_.guard.knows(token, now_.steady);
      }
      break;
    default:
      break;
  }
  return 0;
}

int Connection::on_data(std::int32_t id, std::string_view bytes) {
  Stream* const stream = find(id);
  const bool is_awaited = stream != nullptr && (stream->state == Stream::State::receiving ||
                                                (stream->state == Stream::State::streaming && !stream->is_ending));
  if (!is_awaited) return 0;
  if (buffered_ + bytes.size() > options_.max_buffered) {
    respond_error(*stream, StatusCode::resource_exhausted, "too many unfinished requests on this connection");
    return 0;
  }
  std::string& request = stream->request;
  request.append(bytes);
  buffered_ += bytes.size();
  if (stream->method == Method::reflection) {
    read_reflection(*stream);
    return 0;
  }
  if (request.size() < kFrameHead) return 0;
  const std::size_t length = message_length(request);
  if (length > options_.max_message) {
    respond_error(*stream, StatusCode::resource_exhausted,
                  fmt::format("a request of {} bytes is larger than the limit of {}", length, options_.max_message));
  } else if (request.size() > kFrameHead + length) {
    respond_error(*stream, StatusCode::internal, "more than one message in a unary call");
  }
  return 0;
}

int Connection::on_frame(const nghttp2_frame& frame) {
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA: {
      const bool is_end = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
      Stream* const stream = find(frame.hd.stream_id);
      if (stream == nullptr) break;
      if (frame.hd.type == NGHTTP2_DATA && (is_end || frame.hd.length > frame.data.padlen)) ++call_data_;
      if (is_end) stream->remote_closed = true;
      const bool is_head = frame.hd.type == NGHTTP2_HEADERS && frame.headers.cat == NGHTTP2_HCAT_REQUEST;
      if (is_head && !judge_head(*stream)) break;
      if (is_end) dispatch(*stream);
      break;
    }
    case NGHTTP2_RST_STREAM:
      if (Stream* const stream = find(frame.hd.stream_id)) stream->remote_closed = true;
      return resets_.take(now_.steady) ? 0 : fail(NGHTTP2_ENHANCE_YOUR_CALM);
    case NGHTTP2_SETTINGS:
      greeted_ = true;
      break;
    case NGHTTP2_PING:
      if ((frame.hd.flags & NGHTTP2_FLAG_ACK) != 0 &&
          std::equal(kDrainPing.begin(), kDrainPing.end(), std::begin(frame.ping.opaque_data))) {
        finish_drain();
      }
      break;
    default:
      break;
  }
  return 0;
}

int Connection::on_invalid_frame(const nghttp2_frame& frame) {
  service_.metrics.add(metrics::Counter::protocol_errors);
  if (frame.hd.stream_id != 0) abandoned_.add(frame.hd.stream_id);
  // Malformed frames of other kinds are counted already.
  if (frame.hd.type != NGHTTP2_HEADERS || control_frames_.take(now_.steady)) return 0;
  return fail(NGHTTP2_ENHANCE_YOUR_CALM);
}

void Connection::on_close(std::int32_t id) {
  Stream* const stream = find(id);
  if (stream == nullptr) return;
  last_ = nullptr;
  last_call_ = now_.steady;
  (stream->remote_closed ? ended_ : abandoned_).add(id);
  release_buffered(*stream);
  waiting_ -= stream->response.size() - stream->sent;
  if (stream->state == Stream::State::pending) stream->cancel();
  StreamList& list = stream->state == Stream::State::streaming ? streaming_ : open_;
  list.erase(list.iterator_to(*stream));
  service_.streams.give_back(*stream);
}

void Connection::release_buffered(Stream& stream) {
  buffered_ -= stream.request.size();
  stream.request.clear();
}

void Connection::submit(Stream& stream, std::span<const nghttp2_nv> fields, bool with_body) {
  if (stream.state != Stream::State::streaming) {
    release_buffered(stream);
    stream.state = Stream::State::answered;
  }
  if (!with_body) stream.response.clear();
  waiting_ += stream.response.size();
  control_frames_.call_answered();
  resets_.call_answered();
  nghttp2_data_provider body{};
  body.source.ptr = &stream;
  body.read_callback = Callbacks::body;
  const int result =
      nghttp2_submit_response(session_.get(), stream.id, fields.data(), fields.size(), with_body ? &body : nullptr);
  if (result != 0) {
    end(NGHTTP2_INTERNAL_ERROR);
    return;
  }
  if (!stream.remote_closed && stream.state != Stream::State::streaming) early_.push_back(stream.id);
}

ssize_t Connection::read_body(Stream& stream, std::span<std::uint8_t> room, std::uint32_t& flags) {
  const std::size_t size = std::min(room.size(), stream.response.size() - stream.sent);
  std::memcpy(room.data(), stream.response.data() + stream.sent, size);
  stream.sent += size;
  waiting_ -= size;
  if (stream.state == Stream::State::streaming && stream.sent == stream.response.size() && !stream.is_ending) {
    stream.response.clear();
    stream.sent = 0;
    return size == 0 ? static_cast<ssize_t>(NGHTTP2_ERR_DEFERRED) : static_cast<ssize_t>(size);
  }
  if (stream.sent == stream.response.size()) {
    flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream.has_trailers) {
      flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      nghttp2_submit_trailer(session_.get(), stream.id, &kGrpcOk, 1);
    }
  }
  return static_cast<ssize_t>(size);
}

}  // namespace sluice::front::grpc
