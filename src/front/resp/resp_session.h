// A RESP connection over a socket.
#pragma once

#include "front/resp/resp_options.h"
#include "server/transport.h"
#include "server/worker.h"

namespace sluice::resp {

/// Serves an accepted connection until either side ends it. On the worker's thread; `options` must outlive the worker.
void start_resp_session(server::Worker& worker, server::Transport transport, const RespOptions& options);

}  // namespace sluice::resp
