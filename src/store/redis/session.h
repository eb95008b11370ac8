// Carries out what a machine wishes: a connection and one timer.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "store/redis/machine.h"
#include "store/redis/tls.h"
#include "store/redis/wire.h"

namespace sluice::store::redis {

/// Everything runs on the thread of `io`. Kept alive by its pending operations until stop() has been called and they
/// have ended.
class Session final : public std::enable_shared_from_this<Session>, public Wire::Owner {
 public:
  /// All must live until stop(). `tls`: null for a connection in the clear.
  Session(boost::asio::io_context& io, Machine& machine, Locator& locator, Tls* tls);

  /// Carries out the first wish.
  void start() { pump(); }
  /// Closes the connection; the machine hears nothing more.
  void stop();
  /// To be called after the machine was given something to do. Calls of one turn of the loop leave in one write.
  void wake_up();

  [[nodiscard]] static std::int64_t now();

 private:
  void wire_opened() override;
  void wire_read(std::string_view bytes) override;
  void wire_written() override;
  void wire_failed(std::string_view why) override;

  void pump();
  void connect();
  void open_wire(const std::optional<Address>& address, std::string_view why);
  void close_wire();
  void arm_timer();

  boost::asio::io_context& io_;
  Machine* machine_;
  Locator& locator_;
  Tls* tls_;
  boost::asio::steady_timer timer_;
  std::int64_t armed_for_ = Machine::kNoWakeup;
  std::shared_ptr<Wire> wire_;
  std::uint64_t attempt_ = 0;  ///< of connecting: what comes of an older one is void
  bool is_open_ = false;
  bool writing_ = false;
  bool pump_posted_ = false;
};

}  // namespace sluice::store::redis
