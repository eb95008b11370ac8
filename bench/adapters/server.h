// Servers of the frameworks that there are adapters for, with a limit and without: what the adapters cost end to end.
#pragma once

#include "sluice/http_limits.h"

namespace sluice::bench {

/// Serve on 127.0.0.1 until the process ends; null: without a limit.
[[noreturn]] void serve_httplib(int port, HttpLimits* limits);
[[noreturn]] void serve_beast(int port, HttpLimits* limits);
[[noreturn]] void serve_grpc(int port, HttpLimits* limits);

}  // namespace sluice::bench
