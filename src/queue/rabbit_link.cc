#include "queue/rabbit_link.h"

#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <utility>
#include <vector>

#include "base/read_file.h"
#include "config/settings.h"

namespace sluice::queue::rabbit {
namespace {

using std::chrono::nanoseconds;

constexpr int kHeartbeat = 10;  // seconds
constexpr int kFrameMax = 131072;
constexpr char kPersistent = 2;

/// A failure only costs packets.
void set_cork(int descriptor, int value) {
  (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_CORK, &value, sizeof value);
}

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

timeval to_timeval(nanoseconds time) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  timeval value{};
  value.tv_sec = static_cast<decltype(value.tv_sec)>(us / 1'000'000);
  value.tv_usec = static_cast<decltype(value.tv_usec)>(us % 1'000'000);
  return value;
}

}  // namespace

std::string lane_name(const config::QueueSettings& settings, std::uint64_t lane) {
  return settings.queue + "." + std::to_string(lane);
}

amqp_bytes_t bytes_of(std::string_view text) {
  amqp_bytes_t bytes{};
  bytes.len = text.size();
  bytes.bytes = const_cast<char*>(text.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast): it only reads
  return bytes;
}

/// Marks that a call which may block is under way.
class Link::Busy {
 public:
  explicit Busy(Link& link) : link_(link) { link_.busy_since_ = now_ns(); }
  ~Busy() { link_.busy_since_ = 0; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  Link& link_;
};

Link::Link(const config::QueueSettings& settings, int wake_descriptor)
    : settings_(settings), wake_descriptor_(wake_descriptor) {}

Link::~Link() {
  if (state_ == nullptr) return;
  {
    const std::scoped_lock lock(descriptor_mutex_);
    descriptor_ = -1;
  }
  amqp_destroy_connection(state_);
}

void Link::close() {
  if (!std::exchange(is_open_, false)) return;
  const Busy busy(*this);
  (void)amqp_connection_close(state_, AMQP_REPLY_SUCCESS);
}

bool Link::fail(std::string why) {
  is_open_ = false;
  problem_ = std::move(why);
  return false;
}

bool Link::check(int status, std::string_view doing) {
  if (status == AMQP_STATUS_OK) return true;
  return fail(std::string(doing) + ": " + amqp_error_string2(status));
}

bool Link::check(const amqp_rpc_reply_t& reply, std::string_view doing) {
  const std::string begin = std::string(doing) + ": ";
  switch (reply.reply_type) {
    case AMQP_RESPONSE_NORMAL:
      return true;
    case AMQP_RESPONSE_LIBRARY_EXCEPTION:
      return fail(begin + amqp_error_string2(reply.library_error));
    case AMQP_RESPONSE_SERVER_EXCEPTION: {
      amqp_bytes_t text{};
      if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
        text = static_cast<amqp_channel_close_t*>(reply.reply.decoded)->reply_text;
      } else if (reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
        text = static_cast<amqp_connection_close_t*>(reply.reply.decoded)->reply_text;
      }
      return fail(begin + (text.len == 0 ? "refused" : std::string(static_cast<const char*>(text.bytes), text.len)));
    }
    default:
      return fail(begin + "no answer");
  }
}

bool Link::connect() {
  std::string url = settings_.url;
  amqp_connection_info info{};
  amqp_default_connection_info(&info);
  // It writes into the text, which keeps the parts.
  if (amqp_parse_url(url.data(), &info) != AMQP_STATUS_OK) {
    return fail("the url " + config::without_password(settings_.url) + " cannot be read");
  }
  state_ = amqp_new_connection();
  amqp_socket_t* socket = info.ssl != 0 ? amqp_ssl_socket_new(state_) : amqp_tcp_socket_new(state_);
  if (socket == nullptr) return fail("no memory for a socket");
  if (info.ssl != 0) {
    amqp_ssl_socket_set_verify_peer(socket, 1);
    amqp_ssl_socket_set_verify_hostname(socket, 1);
    for (const std::string* file : {&settings_.ca, &settings_.certificate, &settings_.key}) {
      if (const auto refusal = refusal_of_irregular(*file)) return fail(*file + ": " + refusal->message);
    }
    if (!settings_.ca.empty() && !check(amqp_ssl_socket_set_cacert(socket, settings_.ca.c_str()), "ca")) return false;
    if (!settings_.certificate.empty() &&
        !check(amqp_ssl_socket_set_key(socket, settings_.certificate.c_str(), settings_.key.c_str()), "certificate")) {
      return false;
    }
  }
  timeval timeout = to_timeval(settings_.timeout);
  amqp_set_handshake_timeout(state_, &timeout);
  amqp_set_rpc_timeout(state_, &timeout);
  if (!check(amqp_socket_open_noblock(socket, info.host, info.port, &timeout), "cannot connect")) return false;
  {
    const std::scoped_lock lock(descriptor_mutex_);
    descriptor_ = amqp_get_sockfd(state_);
  }
  return check(
      amqp_login(state_, info.vhost, 0, kFrameMax, kHeartbeat, AMQP_SASL_METHOD_PLAIN, info.user, info.password),
      "login");
}

bool Link::open() {
  const Busy busy(*this);
  if (!connect()) return false;
  amqp_channel_open(state_, kChannel);
  if (!check(amqp_get_rpc_reply(state_), "channel")) return false;
  is_open_ = true;
  return true;
}

bool Link::declare_queue(const std::string& name, bool one_consumer) {
  std::array<amqp_table_entry_t, 2> entries{};
  entries[0].key = amqp_cstring_bytes("x-queue-type");
  entries[0].value.kind = AMQP_FIELD_KIND_UTF8;
  entries[0].value.value.bytes = amqp_cstring_bytes("quorum");
  entries[1].key = amqp_cstring_bytes("x-single-active-consumer");
  entries[1].value.kind = AMQP_FIELD_KIND_BOOLEAN;
  entries[1].value.value.boolean = 1;
  amqp_table_t arguments{};
  arguments.num_entries = one_consumer ? 2 : 1;
  arguments.entries = entries.data();
  amqp_queue_declare(state_, kChannel, bytes_of(name), 0, 1, 0, 0, arguments);
  return check(amqp_get_rpc_reply(state_), "queue " + name);
}

bool Link::declare() {
  const Busy busy(*this);
  for (std::uint64_t lane = 0; lane < settings_.lanes; ++lane) {
    busy_since_ = now_ns();
    if (!declare_queue(lane_name(settings_, lane), true)) return false;
  }
  return declare_queue(settings_.dead_letter, false);
}

std::optional<std::uint64_t> Link::count() {
  const Busy busy(*this);
  std::uint64_t sum = 0;
  for (std::uint64_t lane = 0; lane < settings_.lanes; ++lane) {
    busy_since_ = now_ns();
    const std::string name = lane_name(settings_, lane);
    const amqp_queue_declare_ok_t* ok =
        amqp_queue_declare(state_, kChannel, bytes_of(name), 1, 0, 0, 0, amqp_empty_table);
    if (!check(amqp_get_rpc_reply(state_), "queue " + name) || ok == nullptr) return std::nullopt;
    sum += ok->message_count;
  }
  amqp_maybe_release_buffers(state_);
  return sum;
}

bool Link::select_confirms() {
  const Busy busy(*this);
  amqp_confirm_select(state_, kChannel);
  return check(amqp_get_rpc_reply(state_), "confirms");
}

bool Link::publish(const std::string& queue, std::uint64_t serial, std::string_view payload,
                   const std::string& reason) {
  const Busy busy(*this);
  const std::string id = std::to_string(serial);
  amqp_table_entry_t entry{};
  entry.key = amqp_cstring_bytes("sluice-reason");
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = bytes_of(reason);
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG;
  properties.delivery_mode = kPersistent;
  properties.message_id = bytes_of(id);
  if (!reason.empty()) {
    properties._flags |= AMQP_BASIC_HEADERS_FLAG;
    properties.headers.num_entries = 1;
    properties.headers.entries = &entry;
  }
  // Mandatory: a message that no queue takes comes back and is not stored.
  return check(
      amqp_basic_publish(state_, kChannel, amqp_empty_bytes, bytes_of(queue), 1, 0, &properties, bytes_of(payload)),
      "publish");
}

bool Link::consume(std::uint16_t prefetch) {
  const Busy busy(*this);
  // Per consumer, so per lane.
  amqp_basic_qos(state_, kChannel, 0, prefetch, 0);
  if (!check(amqp_get_rpc_reply(state_), "prefetch")) return false;
  for (std::uint64_t lane = 0; lane < settings_.lanes; ++lane) {
    busy_since_ = now_ns();
    const std::string name = lane_name(settings_, lane);
    const std::string number = std::to_string(lane);
    amqp_basic_consume(state_, kChannel, bytes_of(name), bytes_of(number), 0, 0, 0, amqp_empty_table);
    if (!check(amqp_get_rpc_reply(state_), "consume " + name)) return false;
  }
  return true;
}

bool Link::acknowledge(std::uint64_t tag, bool all_before) {
  const Busy busy(*this);
  return check(amqp_basic_ack(state_, kChannel, tag, all_before ? 1 : 0), "acknowledge");
}

Link::Together::Together(Link& link) : link_(link) { set_cork(amqp_get_sockfd(link_.state_), 1); }

Link::Together::~Together() { set_cork(amqp_get_sockfd(link_.state_), 0); }

Link::Event Link::next(amqp_frame_t& frame) {
  const Busy busy(*this);
  timeval now{};
  const int status = amqp_simple_wait_frame_noblock(state_, &frame, &now);
  if (status == AMQP_STATUS_TIMEOUT) return Event::none;
  if (status != AMQP_STATUS_OK) {
    fail(amqp_error_string2(status));
    return Event::failed;
  }
  if (frame.frame_type == AMQP_FRAME_METHOD && (frame.payload.method.id == AMQP_CHANNEL_CLOSE_METHOD ||
                                                frame.payload.method.id == AMQP_CONNECTION_CLOSE_METHOD)) {
    amqp_rpc_reply_t reply{};
    reply.reply_type = AMQP_RESPONSE_SERVER_EXCEPTION;
    reply.reply = frame.payload.method;
    (void)check(reply, "closed by the server");
    return Event::failed;
  }
  return Event::frame;
}

bool Link::read_message(amqp_message_t& message) {
  const Busy busy(*this);
  return check(amqp_read_message(state_, kChannel, &message, 0), "message");
}

void Link::wait(std::chrono::milliseconds patience) {
  if (amqp_frames_enqueued(state_) != 0 || amqp_data_in_buffer(state_) != 0) return;
  std::array<pollfd, 2> descriptors{};
  descriptors[0].fd = amqp_get_sockfd(state_);
  descriptors[0].events = POLLIN;
  descriptors[1].fd = wake_descriptor_;
  descriptors[1].events = POLLIN;
  (void)::poll(descriptors.data(), descriptors.size(), static_cast<int>(patience.count()));
}

void Link::tidy() { amqp_maybe_release_buffers(state_); }

void Link::abort_if_stuck(nanoseconds patience) {
  const std::int64_t since = busy_since_;
  if (since == 0 || now_ns() - since < patience.count()) return;
  const std::scoped_lock lock(descriptor_mutex_);
  if (descriptor_ >= 0) ::shutdown(descriptor_, SHUT_RDWR);
}

}  // namespace sluice::queue::rabbit
