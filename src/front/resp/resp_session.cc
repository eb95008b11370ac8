#include "front/resp/resp_session.h"

#include <atomic>
#include <boost/asio/execution_context.hpp>
#include <cstdint>
#include <memory>
#include <utility>

#include "front/byte_session.h"
#include "front/resp/connection.h"

namespace sluice::resp {
namespace {

namespace asio = boost::asio;

/// What the connections of one event loop share.
class RespThread final : public asio::execution_context::service {
 public:
  using key_type = RespThread;                   // NOLINT(readability-identifier-naming): Asio's name
  static inline asio::execution_context::id id;  // NOLINT(readability-identifier-naming): Asio's name

  explicit RespThread(asio::execution_context& context) : service(context) {}

  ThrottleLimits limits;

 private:
  void shutdown() override {}
};

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

void start_resp_session(server::Worker& worker, server::Transport transport, const RespOptions& options) {
  const Environment environment{.options = options,
                                .policy = worker.policy,
                                .store = *worker.store,
                                .metrics = worker.metrics,
                                .limits = asio::use_service<RespThread>(worker.io).limits,
                                .is_certified = transport.is_certified()};
  const auto make = [&](front::SessionHost& host) {
    return Connection(environment, host, next_id(), worker.clock.now());
  };
  std::make_shared<front::ByteSession<Connection>>(worker, std::move(transport), make)->start();
}

}  // namespace sluice::resp
