// Servers of the frameworks that there are adapters for, with a limit and without: what the adapters cost end to end.
#pragma once

#include "sluice/http_limits.h"

namespace sluice::bench {

/// What an answer of a limit looks like: for servers that send the same fields and ask nothing.
inline HttpAnswer constant_answer() {
  HttpAnswer answer;
  answer.headers.add("RateLimit") = R"("PerUser";r=999999999;t=1)";
  answer.headers.add("RateLimit-Policy") = R"("PerUser";q=1000000000;w=1)";
  answer.headers.add("X-RateLimit-Limit") = "1000000000";
  answer.headers.add("X-RateLimit-Remaining") = "999999999";
  answer.headers.add("X-RateLimit-Reset") = "1";
  return answer;
}

/// Serve on 127.0.0.1 until the process ends. Without `limits` nothing is asked; then `fields`, unless it is null, goes
/// into every response.
[[noreturn]] void serve_httplib(int port, HttpLimits* limits, const HttpAnswer* fields);
[[noreturn]] void serve_beast(int port, HttpLimits* limits, const HttpAnswer* fields);
[[noreturn]] void serve_grpc(int port, HttpLimits* limits);

}  // namespace sluice::bench
