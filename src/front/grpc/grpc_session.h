// The socket under a gRPC connection.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "front/grpc/grpc_options.h"
#include "server/worker.h"

namespace sluice::front {

/// Serves gRPC on an accepted connection until either side ends it; the session owns itself and is listed in `worker`.
/// To be called on the worker's thread, with a socket of `worker.io`. `worker` and `options` must outlive the session;
/// `worker.store` must be set.
void start_grpc_session(server::Worker& worker, boost::asio::ip::tcp::socket socket, const GrpcOptions& options);

}  // namespace sluice::front
