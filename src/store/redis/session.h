// The transport of a client: a socket, a resolver and one timer.
#pragma once

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "store/redis/client.h"
#include "store/redis/url.h"

namespace sluice::store::redis {

/// Carries out what a Client wishes. Everything runs on the thread of `io`. Kept alive by its pending operations until
/// stop() has been called and they have ended.
class Session final : public std::enable_shared_from_this<Session>, private Node::Listener {
 public:
  /// `client`, `node` and `endpoint` must live until stop().
  Session(boost::asio::io_context& io, Client& client, Node& node, const Endpoint& endpoint);

  /// Opens the connection.
  void start();
  /// Closes it; the client hears nothing more.
  void stop();
  /// To be called after the client was given something to do. Calls of one turn of the loop leave in one write.
  void wake_up();

  [[nodiscard]] static std::int64_t now();

 private:
  using Socket = boost::asio::generic::stream_protocol::socket;

  void node_changed() override;
  void pump();
  void connect();
  void look_up();
  void connect_next();
  void opened();
  void close_socket();
  void read();
  void write();
  void arm_timer();

  boost::asio::io_context& io_;
  Client* client_;
  Node& node_;
  const Endpoint& endpoint_;
  boost::asio::ip::tcp::resolver resolver_;
  Socket socket_;
  boost::asio::steady_timer timer_;
  std::int64_t armed_for_ = Client::kNoWakeup;
  std::vector<Socket::endpoint_type> targets_;  ///< addresses still to be tried
  std::uint64_t generation_ = 0;                ///< of the socket: completions of an older one are void
  bool connected_ = false;
  bool pump_posted_ = false;
  bool writing_ = false;
  std::string outgoing_;
  std::array<char, 16384> incoming_{};
};

}  // namespace sluice::store::redis
