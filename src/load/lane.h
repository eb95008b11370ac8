// One way by which requests go to a target: a connection, or the library in this process.
#pragma once

#include <cstddef>
#include <string>

#include "load/protocol.h"

namespace sluice::load {

/// Not thread-safe: one thread's event loop.
class Lane {
 public:
  /// Hears of answers, perhaps before ask() has returned.
  class Owner : public Protocol::Owner {
   public:
    /// Requests may be asked (again): the lane is up.
    virtual void lane_ready() = 0;
    /// It could not be opened or is lost; it tries again by itself. Tickets that it held have been answered.
    virtual void lane_lost(const std::string& why) = 0;

   protected:
    ~Owner() = default;
  };

  virtual ~Lane() = default;
  /// Begins to connect.
  virtual void start() = 0;
  /// Ends it; the owner hears nothing more.
  virtual void stop() = 0;
  /// Up, and less than its bound in flight.
  [[nodiscard]] virtual bool has_room() const = 0;
  /// Precondition: has_room().
  virtual void ask(Ticket ticket, std::string_view domain, const Descriptors& descriptors, std::uint64_t cost) = 0;
};

}  // namespace sluice::load
