// The library in this process as a target.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>

#include "load/lane.h"
#include "sluice/limiter.h"

namespace sluice::load {

/// On counters in memory each answer comes before ask() returns; with Redis it comes from the limiter's thread and is
/// told on `io`.
class LibraryLane final : public Lane {
 public:
  /// `limiter` and `owner` must outlive this; `is_shared`: it asks Redis.
  LibraryLane(boost::asio::io_context& io, Lane::Owner& owner, Limiter& limiter, bool is_shared,
              std::size_t most_in_flight);
  ~LibraryLane() override;
  LibraryLane(const LibraryLane&) = delete;
  LibraryLane& operator=(const LibraryLane&) = delete;

  void start() override;
  void stop() override;
  [[nodiscard]] bool has_room() const override;
  void ask(Ticket ticket, std::string_view domain, const Descriptors& descriptors, std::uint64_t cost) override;

 private:
  struct Shared;
  void wait_until_ready();

  boost::asio::io_context& io_;
  Lane::Owner& owner_;
  Limiter& limiter_;
  const bool is_shared_;
  const std::size_t most_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace sluice::load
