// Connections that a balancer passes on: who is at their other end is told at their beginning (PROXY protocol).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

namespace sluice::server {

/// Reads the header of each new connection, and not a byte more. Those that bring none in time, or another beginning,
/// are closed. Not thread-safe: everything runs on the thread that runs the io_context.
class ProxyHandshakes {
 public:
  /// Gets each socket whose header was read: its own from now on. `client`: the address told; empty: the balancer asks
  /// for itself, as for a health check.
  using Done = std::function<void(int descriptor, boost::asio::ip::tcp protocol, std::string client)>;
  /// Told of each connection that was closed.
  using Refused = std::function<void()>;

  ProxyHandshakes(boost::asio::io_context& io, Done done, Refused refused);
  ~ProxyHandshakes();
  ProxyHandshakes(const ProxyHandshakes&) = delete;
  ProxyHandshakes& operator=(const ProxyHandshakes&) = delete;

  /// Takes over an accepted, non-blocking socket. When very many wait for their header already, it is closed.
  void begin(int descriptor, boost::asio::ip::tcp protocol);
  /// Hands on those whose header has come, and closes the others.
  void stop();

 private:
  class One;
  void close();
  void end(const std::shared_ptr<One>& one);
  /// Logs that a connection is closed, unless another one was told a short time ago.
  void tell(const boost::asio::ip::tcp::socket& socket, std::string_view why);

  boost::asio::io_context& io_;
  Done done_;
  Refused refused_;
  std::unordered_set<std::shared_ptr<One>> waiting_;
  std::uint64_t untold_ = 0;  ///< closed since the log told of one
  std::chrono::steady_clock::time_point tell_again_;
};

}  // namespace sluice::server
