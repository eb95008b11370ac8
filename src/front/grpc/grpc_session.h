// The socket under a gRPC connection.
#pragma once

#include "front/grpc/grpc_options.h"
#include "server/transport.h"
#include "server/worker.h"

namespace sluice::front {

/// Serves gRPC on an accepted connection until either side ends it; the session owns itself and is listed in `worker`.
/// To be called on the worker's thread. `worker` and `options` must outlive the session; `worker.store` must be set.
void start_grpc_session(server::Worker& worker, server::Transport transport, const GrpcOptions& options);

}  // namespace sluice::front
