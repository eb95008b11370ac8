#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <sys/time.h>

#include <chrono>
#include <map>
#include <stdexcept>

#include "queue/bare.h"
#include "queue/spread.h"

namespace sluice::bench {
namespace {

using Steady = std::chrono::steady_clock;

constexpr amqp_channel_t kChannel = 1;

amqp_bytes_t bytes_of(const std::string& text) { return {.len = text.size(), .bytes = const_cast<char*>(text.data())}; }

void check(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("bare RabbitMQ: ") + what);
}

/// A connection with one channel.
class Connection {
 public:
  explicit Connection(std::string url) : state_(amqp_new_connection()) {
    amqp_connection_info info{};
    amqp_default_connection_info(&info);
    check(amqp_parse_url(url.data(), &info) == AMQP_STATUS_OK, "url");
    amqp_socket_t* socket = amqp_tcp_socket_new(state_);
    check(amqp_socket_open(socket, info.host, info.port) == AMQP_STATUS_OK, "connect");
    const auto login = amqp_login(state_, info.vhost, 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, info.user, info.password);
    check(login.reply_type == AMQP_RESPONSE_NORMAL, "login");
    amqp_channel_open(state_, kChannel);
    check_reply("channel");
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    amqp_connection_close(state_, AMQP_REPLY_SUCCESS);
    amqp_destroy_connection(state_);
  }
  [[nodiscard]] amqp_connection_state_t state() const { return state_; }
  void check_reply(const char* what) const {
    check(amqp_get_rpc_reply(state_).reply_type == AMQP_RESPONSE_NORMAL, what);
  }

 private:
  amqp_connection_state_t state_;
};

/// One frame of the server's, if there is one; with `waits`, within ten seconds.
bool next_frame(const Connection& connection, amqp_frame_t& frame, bool waits) {
  timeval patience{.tv_sec = waits ? 10 : 0, .tv_usec = 0};
  const int status = amqp_simple_wait_frame_noblock(connection.state(), &frame, &patience);
  check(status == AMQP_STATUS_OK || (status == AMQP_STATUS_TIMEOUT && !waits), "no frame");
  return status == AMQP_STATUS_OK;
}

}  // namespace

Loop publish_rabbit(const config::QueueSettings& settings, const Load& load, std::size_t in_flight) {
  const Connection connection(settings.url);
  amqp_confirm_select(connection.state(), kChannel);
  connection.check_reply("confirms");
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG;
  properties.delivery_mode = 2;
  std::map<std::uint64_t, Steady::time_point> open;
  std::vector<double> latencies;
  const auto take = [&](bool waits) {
    amqp_frame_t frame{};
    if (!next_frame(connection, frame, waits)) return false;
    if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD) {
      throw std::runtime_error("a bare message was not confirmed");
    }
    const auto* ack = static_cast<const amqp_basic_ack_t*>(frame.payload.method.decoded);
    const auto now = Steady::now();
    auto first = ack->multiple != 0 ? open.begin() : open.find(ack->delivery_tag);
    while (first != open.end() && first->first <= ack->delivery_tag) {
      latencies.push_back(std::chrono::duration<double, std::milli>(now - first->second).count());
      first = open.erase(first);
    }
    amqp_maybe_release_buffers(connection.state());
    return true;
  };
  const auto begin = Steady::now();
  for (std::size_t i = 0; i < load.payloads.size(); ++i) {
    while (open.size() >= in_flight) (void)take(true);
    while (take(false)) {
    }
    const std::string queue = settings.queue + "." + std::to_string(queue::spread_over(load.keys[i], settings.lanes));
    open.emplace(i + 1, Steady::now());
    check(amqp_basic_publish(connection.state(), kChannel, amqp_empty_bytes, bytes_of(queue), 1, 0, &properties,
                             bytes_of(load.payloads[i])) == AMQP_STATUS_OK,
          "publish");
  }
  while (!open.empty()) (void)take(true);
  return summary_of(std::move(latencies), std::chrono::duration<double>(Steady::now() - begin).count());
}

Loop consume_rabbit(const config::QueueSettings& settings, std::size_t count) {
  const Connection connection(settings.url);
  amqp_basic_qos(connection.state(), kChannel, 0, static_cast<std::uint16_t>(settings.prefetch), 0);
  connection.check_reply("prefetch");
  for (std::uint64_t lane = 0; lane < settings.lanes; ++lane) {
    const std::string queue = settings.queue + "." + std::to_string(lane);
    amqp_basic_consume(connection.state(), kChannel, bytes_of(queue), amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
    connection.check_reply("consume");
  }
  Steady::time_point begin;
  for (std::size_t taken = 0; taken < count; ++taken) {
    amqp_envelope_t envelope{};
    amqp_maybe_release_buffers(connection.state());
    const auto reply = amqp_consume_message(connection.state(), &envelope, nullptr, 0);
    check(reply.reply_type == AMQP_RESPONSE_NORMAL, "message");
    if (taken == 0) begin = Steady::now();
    check(amqp_basic_ack(connection.state(), kChannel, envelope.delivery_tag, 0) == AMQP_STATUS_OK, "acknowledge");
    amqp_destroy_envelope(&envelope);
  }
  const double seconds = std::chrono::duration<double>(Steady::now() - begin).count();
  return {.per_second = static_cast<double>(count - 1) / seconds};
}

}  // namespace sluice::bench
