// Floor: unary gRPC on libnghttp2 and epoll, as few lines as do the work: no TLS, no limits, no drain. One event loop.
// usage: h2grpc PORT
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decide.h"

namespace {

using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;

constexpr std::string_view kPath = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
constexpr std::size_t kMaxMessage = 4U << 20U;
constexpr std::size_t kPrefix = 5;  // compression flag and length before a gRPC message

struct Stream {  // pooled
  std::int32_t id = 0;
  bool path_ok = false;
  bool is_post = false;
  bool content_type_ok = false;
  bool responded = false;
  std::string in;
  std::string out;
  std::size_t sent = 0;
  Stream* next = nullptr;

  void reset() {
    id = 0;
    path_ok = is_post = content_type_ok = responded = false;
    in.clear();
    out.clear();
    sent = 0;
  }
};

struct Loop {
  int epoll = -1;
  int listener = -1;
  Stream* free_streams = nullptr;
  nghttp2_session_callbacks* callbacks = nullptr;
  RateLimitRequest request;  // reused
  RateLimitResponse response;

  Stream* take() {
    if (free_streams == nullptr) return new Stream;
    Stream* stream = free_streams;
    free_streams = stream->next;
    stream->reset();
    return stream;
  }
  void give_back(Stream* stream) {
    stream->next = free_streams;
    free_streams = stream;
  }
};

struct Connection {
  Connection(Loop& the_loop, int the_fd) : loop(the_loop), fd(the_fd) {}

  Loop& loop;
  int fd;
  nghttp2_session* session = nullptr;
  std::string out;
  std::size_t written = 0;
  bool waits_for_write = false;
};

Connection& connection_of(void* user_data) { return *static_cast<Connection*>(user_data); }

Stream* stream_of(nghttp2_session* session, std::int32_t id) {
  return static_cast<Stream*>(nghttp2_session_get_stream_user_data(session, id));
}

nghttp2_nv header(std::string_view name, std::string_view value) {
  // nghttp2 takes pointers to non-const for historical reasons; with NO_COPY it only reads them.
  auto* n = reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data()));
  auto* v = reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data()));
  return {n, v, name.size(), value.size(), NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

ssize_t read_body(nghttp2_session* session, std::int32_t id, std::uint8_t* buffer, std::size_t length,
                  std::uint32_t* flags, nghttp2_data_source* source, void* /*user_data*/) {
  auto* stream = static_cast<Stream*>(source->ptr);
  const std::size_t n = std::min(length, stream->out.size() - stream->sent);
  std::copy_n(stream->out.data() + stream->sent, n, buffer);
  stream->sent += n;
  if (stream->sent == stream->out.size()) {
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    const nghttp2_nv trailer = header("grpc-status", "0");
    nghttp2_submit_trailer(session, id, &trailer, 1);
  }
  return static_cast<ssize_t>(n);
}

void respond_error(nghttp2_session* session, Stream& stream, std::string_view code, std::string_view message) {
  const std::array headers{header(":status", "200"), header("content-type", "application/grpc"),
                           header("grpc-status", code), header("grpc-message", message)};
  stream.responded = true;
  nghttp2_submit_response(session, stream.id, headers.data(), headers.size(), nullptr);
}

/// What is wrong with a request, as a gRPC status.
struct Refusal {
  std::string_view code;
  std::string_view message;
};

std::optional<Refusal> parse(const Stream& stream, RateLimitRequest& request) {
  if (!stream.path_ok) return Refusal{"12", "unknown method"};
  if (stream.in.size() < kPrefix) return Refusal{"13", "missing message"};
  const auto byte = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(stream.in[i])}; };
  if (byte(0) != 0) return Refusal{"12", "compression not supported"};
  const std::size_t length = byte(1) << 24U | byte(2) << 16U | byte(3) << 8U | byte(4);
  if (length + kPrefix != stream.in.size()) return Refusal{"13", "bad length"};
  if (!request.ParseFromArray(stream.in.data() + kPrefix, static_cast<int>(length))) return Refusal{"3", "bad request"};
  return std::nullopt;
}

void respond(Connection& connection, Stream& stream) {
  if (stream.responded) return;
  if (!stream.is_post || !stream.content_type_ok) {
    const nghttp2_nv status = header(":status", "415");
    stream.responded = true;
    nghttp2_submit_response(connection.session, stream.id, &status, 1, nullptr);
    return;
  }
  RateLimitResponse& response = connection.loop.response;
  if (const auto refusal = parse(stream, connection.loop.request)) {
    respond_error(connection.session, stream, refusal->code, refusal->message);
    return;
  }
  response.Clear();
  sluice::floors::decide(connection.loop.request, response);

  const std::size_t n = response.ByteSizeLong();
  stream.out.resize(kPrefix + n);
  auto* out = reinterpret_cast<std::uint8_t*>(stream.out.data());
  out[0] = 0;
  for (unsigned i = 0; i < 4; ++i) out[1 + i] = static_cast<std::uint8_t>(n >> (24U - 8U * i));
  response.SerializeWithCachedSizesToArray(out + kPrefix);
  const std::array headers{header(":status", "200"), header("content-type", "application/grpc")};
  nghttp2_data_provider body{};
  body.source.ptr = &stream;
  body.read_callback = read_body;
  stream.responded = true;
  nghttp2_submit_response(connection.session, stream.id, headers.data(), headers.size(), &body);
}

int on_begin_headers(nghttp2_session* session, const nghttp2_frame* frame, void* user_data) {
  if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  Stream* stream = connection_of(user_data).loop.take();
  stream->id = frame->hd.stream_id;
  nghttp2_session_set_stream_user_data(session, stream->id, stream);
  return 0;
}

int on_header(nghttp2_session* session, const nghttp2_frame* frame, const std::uint8_t* name_data,
              std::size_t name_size, const std::uint8_t* value_data, std::size_t value_size, std::uint8_t /*flags*/,
              void* /*user_data*/) {
  Stream* stream = stream_of(session, frame->hd.stream_id);
  if (stream == nullptr) return 0;
  const std::string_view name(reinterpret_cast<const char*>(name_data), name_size);
  const std::string_view value(reinterpret_cast<const char*>(value_data), value_size);
  if (name == ":path") {
    stream->path_ok = value == kPath;
  } else if (name == ":method") {
    stream->is_post = value == "POST";
  } else if (name == "content-type") {
    stream->content_type_ok = value.starts_with("application/grpc");
  }
  return 0;
}

int on_data(nghttp2_session* session, std::uint8_t /*flags*/, std::int32_t id, const std::uint8_t* data,
            std::size_t size, void* /*user_data*/) {
  Stream* stream = stream_of(session, id);
  if (stream == nullptr) return 0;
  if (stream->in.size() + size > kMaxMessage + kPrefix) {
    if (!stream->responded) respond_error(session, *stream, "8", "message too large");
    return 0;
  }
  stream->in.append(reinterpret_cast<const char*>(data), size);
  return 0;
}

int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* user_data) {
  const bool carries_end = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
  if (!carries_end || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
  Stream* stream = stream_of(session, frame->hd.stream_id);
  if (stream != nullptr) respond(connection_of(user_data), *stream);
  return 0;
}

int on_close(nghttp2_session* session, std::int32_t id, std::uint32_t /*error*/, void* user_data) {
  Stream* stream = stream_of(session, id);
  if (stream == nullptr) return 0;
  nghttp2_session_set_stream_user_data(session, id, nullptr);
  connection_of(user_data).loop.give_back(stream);
  return 0;
}

void watch(Connection& connection, int operation) {
  epoll_event event{};
  event.events = connection.waits_for_write ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.ptr = &connection;
  epoll_ctl(connection.loop.epoll, operation, connection.fd, &event);
}

/// Serialises all that nghttp2 wants to send and writes it with as few system calls as possible. False: close.
bool flush(Connection& connection) {
  constexpr std::size_t kChunk = std::size_t{256} * 1024;
  for (;;) {
    if (connection.written == connection.out.size()) {
      connection.out.clear();
      connection.written = 0;
      while (connection.out.size() < kChunk) {
        const std::uint8_t* data = nullptr;
        const ssize_t n = nghttp2_session_mem_send(connection.session, &data);
        if (n < 0) return false;
        if (n == 0) break;
        connection.out.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(n));
      }
      if (connection.out.empty()) break;
    }
    const ssize_t n =
        write(connection.fd, connection.out.data() + connection.written, connection.out.size() - connection.written);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) break;
      return false;
    }
    connection.written += static_cast<std::size_t>(n);
  }
  const bool unwritten = connection.written < connection.out.size();
  if (unwritten != connection.waits_for_write) {
    connection.waits_for_write = unwritten;
    watch(connection, EPOLL_CTL_MOD);
  }
  return nghttp2_session_want_read(connection.session) != 0 || nghttp2_session_want_write(connection.session) != 0 ||
         unwritten;
}

bool on_readable(Connection& connection, std::vector<std::uint8_t>& buffer) {
  for (;;) {
    const ssize_t n = read(connection.fd, buffer.data(), buffer.size());
    if (n == 0) return false;
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) break;
      return false;
    }
    const auto size = static_cast<std::size_t>(n);
    if (nghttp2_session_mem_recv(connection.session, buffer.data(), size) < 0) {
      flush(connection);
      return false;
    }
    if (size < buffer.size()) break;  // the socket is empty: spares a read that would only say so
  }
  return flush(connection);
}

void close_connection(Connection* connection) {
  nghttp2_session_del(connection->session);
  close(connection->fd);
  delete connection;
}

int listen_on(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd, 1024) != 0) {
    std::perror("h2grpc: cannot listen");
    std::exit(1);
  }
  return fd;
}

void accept_all(Loop& loop) {
  for (;;) {
    const int fd = accept4(loop.listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    auto* connection = new Connection(loop, fd);
    nghttp2_session_server_new(&connection->session, loop.callbacks, connection);
    const std::array settings{nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1000},
                              nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1U << 20U}};
    nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
    nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0, 16 << 20);
    watch(*connection, EPOLL_CTL_ADD);
    if (!flush(*connection)) close_connection(connection);
  }
}

void run(int port) {
  Loop loop;
  loop.epoll = epoll_create1(EPOLL_CLOEXEC);
  loop.listener = listen_on(port);
  nghttp2_session_callbacks_new(&loop.callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(loop.callbacks, on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(loop.callbacks, on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(loop.callbacks, on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(loop.callbacks, on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(loop.callbacks, on_close);
  epoll_event listening{};
  listening.events = EPOLLIN;
  epoll_ctl(loop.epoll, EPOLL_CTL_ADD, loop.listener, &listening);
  std::fprintf(stderr, "ready h2grpc\n");

  std::vector<std::uint8_t> buffer(std::size_t{64} * 1024);
  std::array<epoll_event, 128> events{};
  for (;;) {
    const int n = epoll_wait(loop.epoll, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < n; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      auto* connection = static_cast<Connection*>(event.data.ptr);
      if (connection == nullptr) {
        accept_all(loop);
        continue;
      }
      const bool readable = (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
      const bool alive = readable ? on_readable(*connection, buffer) : flush(*connection);
      if (!alive) close_connection(connection);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: h2grpc PORT\n");
    return 1;
  }
  std::signal(SIGPIPE, SIG_IGN);
  run(std::atoi(argv[1]));
}
