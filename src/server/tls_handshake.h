// A connection that begins with TLS: hands are shaken first, in time.
#pragma once

#include <string>

#include "server/transport.h"
#include "server/worker.h"
#include "server/worker_thread.h"

namespace sluice::server {

/// Shakes hands on the worker's thread and starts the session then. A peer that does not do its part, or not in time,
/// is counted, logged (one a second at most) and dropped. `start` must outlive the worker.
void start_tls_session(Worker& worker, Transport transport, const StartSession& start, std::string client);

}  // namespace sluice::server
