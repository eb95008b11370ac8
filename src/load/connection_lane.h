// A connection to a daemon.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <vector>

#include "load/lane.h"

namespace sluice::load {

/// What is asked in one turn of the loop leaves in one write. When the connection is lost, all that is in flight has
/// failed, and it is made anew after 100 ms.
class ConnectionLane final : public Lane, public Protocol::Owner {
 public:
  enum class Kind : std::uint8_t { grpc, http };

  /// `owner` must outlive this.
  ConnectionLane(boost::asio::io_context& io, Lane::Owner& owner, Kind kind, std::string host, std::string port,
                 std::size_t most_in_flight);
  ~ConnectionLane() override;
  ConnectionLane(const ConnectionLane&) = delete;
  ConnectionLane& operator=(const ConnectionLane&) = delete;

  void start() override;
  void stop() override;
  [[nodiscard]] bool has_room() const override { return is_up_ && tickets_.size() < most_; }
  void ask(Ticket ticket, std::string_view domain, const Descriptors& descriptors, std::uint64_t cost) override;

 private:
  struct Link;

  void answered(Ticket ticket, const Outcome& outcome) override;
  void connect();
  void opened();
  void read();
  void write_soon();
  void write();
  void close();
  void lost(const std::string& why);

  boost::asio::io_context& io_;
  Lane::Owner& owner_;
  const std::string host_;
  const std::string port_;
  const std::size_t most_;
  std::unique_ptr<Protocol> protocol_;
  std::vector<Ticket> tickets_;  ///< in flight, in no order
  std::shared_ptr<Link> link_;   ///< of this connection; completions of an older one find it gone
  bool is_stopped_ = false;
  bool is_up_ = false;
  bool write_posted_ = false;
  bool writing_ = false;
};

}  // namespace sluice::load
