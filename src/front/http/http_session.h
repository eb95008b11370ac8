// HTTP/1.1 over a socket; all of the protocol is HttpConnection's.
#pragma once

#include <string>

#include "front/http/http_context.h"
#include "server/transport.h"
#include "server/worker.h"

namespace sluice::http {

/// Serves an accepted connection. The session lists itself in `worker.sessions` and lives until the connection ends.
/// To be called on the worker's thread; `context` must outlive the worker's sessions. `client`: the address of who is
/// at the other end, where a balancer has told it; empty: the socket knows.
void start_http_session(server::Worker& worker, server::Transport transport, const HttpContext& context,
                        std::string client = {});

}  // namespace sluice::http
