// A listening socket: accepts connections and hands them on, whatever the system runs out of.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "config/address.h"

namespace sluice::server {

/// Not thread-safe: everything runs on the thread that runs the io_context.
class Listener {
 public:
  /// Gets each accepted socket: non-blocking, its own from now on (it must close the descriptor).
  using Accepted = std::function<void(int descriptor, boost::asio::ip::tcp protocol)>;

  /// Binds and listens; nothing is accepted before start(). `name` is for messages: "http". The error names the
  /// address. A Unix socket that nobody listens on any more is replaced; connections to one are like those over TCP.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> open(boost::asio::io_context& io, std::string name,
                                                              const config::Address& address);

  void start(Accepted accepted);
  /// Stops accepting and gives the port back.
  void close();
  [[nodiscard]] const std::string& name() const { return name_; }
  /// The address bound, with the port in place of 0.
  [[nodiscard]] std::string address() const;

 private:
  Listener(boost::asio::io_context& io, std::string name) : acceptor_(io), pause_(io), name_(std::move(name)) {}
  void wait();
  void accept_all();
  int accept_waiting();
  /// The system is out of descriptors or memory: callers wait in the backlog meanwhile.
  void rest(int error);

  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  std::string name_;
  std::string socket_;  ///< path of the Unix socket; empty: TCP
  Accepted accepted_;
  bool resting_ = false;
};

}  // namespace sluice::server
