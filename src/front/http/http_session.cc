#include "front/http/http_session.h"

#include <boost/asio/execution_context.hpp>
#include <memory>
#include <utility>

#include "front/byte_session.h"
#include "front/http/http_connection.h"

namespace sluice::http {
namespace {

namespace asio = boost::asio;

/// What the connections of one event loop share.
class HttpThread final : public asio::execution_context::service {
 public:
  using key_type = HttpThread;                   // NOLINT(readability-identifier-naming): Asio's name
  static inline asio::execution_context::id id;  // NOLINT(readability-identifier-naming): Asio's name

  explicit HttpThread(asio::execution_context& context) : service(context) {}

  Scratch scratch;

 private:
  void shutdown() override {}
};

}  // namespace

void start_http_session(server::Worker& worker, server::Transport transport, const HttpContext& context,
                        std::string client) {
  const Environment environment{.context = context,
                                .policy = worker.policy,
                                .store = *worker.store,
                                .metrics = worker.metrics,
                                .clock = worker.clock,
                                .draining = worker.draining,
                                .scratch = asio::use_service<HttpThread>(worker.io).scratch,
                                .is_certified = transport.is_certified()};
  if (client.empty()) client = transport.peer_address();
  const auto make = [&](front::SessionHost& host) {
    return HttpConnection(environment, host, worker.clock.now(), std::move(client));
  };
  std::make_shared<front::ByteSession<HttpConnection>>(worker, std::move(transport), make)->start();
}

}  // namespace sluice::http
