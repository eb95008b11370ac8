// A TCP connection between a client and a server that breaks as a test says.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

namespace sluice::testing {

/// Forwards connections to a port of 127.0.0.1 until it ends. What it does to them may be changed at any time, from any
/// thread, and holds for connections that are open, too.
class TcpProxy {
 public:
  explicit TcpProxy(std::uint16_t server_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

  /// The next so many pieces that come from the server are cut: half of each goes on, then the connection is reset.
  void cut_replies(int pieces) { cuts_ = pieces; }
  /// What comes from the server goes on this much later.
  void delay_replies(std::chrono::milliseconds delay) { delay_ = delay.count(); }
  /// Nothing goes on, in either direction, and nothing is closed.
  void hold(bool on) { held_ = on; }
  /// New connections are closed at once.
  void refuse(bool on) { refusing_ = on; }
  /// Connections accepted so far.
  [[nodiscard]] int accepted() const { return accepted_; }
  /// Pieces that were cut so far.
  [[nodiscard]] int cut() const { return cut_; }

 private:
  class Link;
  void accept();

  const std::uint16_t server_port_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  boost::asio::ip::tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;
  std::atomic<int> cuts_{0};
  std::atomic<std::int64_t> delay_{0};  // ms
  std::atomic<bool> held_{false};
  std::atomic<bool> refusing_{false};
  std::atomic<int> accepted_{0};
  std::atomic<int> cut_{0};
  std::thread thread_;
};

}  // namespace sluice::testing
