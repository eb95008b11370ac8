// silent: limited, without fields in what is let in.
// usage: adapter_server beast|httplib|grpc bare|fields|silent|limited POLICY PORT
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string_view>

#include "adapters/server.h"
#include "sluice/http_limits.h"
#include "sluice/limiter.h"

int main(int argc, char** argv) {
  using namespace sluice;
  if (argc != 5) {
    std::fprintf(stderr, "usage: adapter_server beast|httplib|grpc bare|fields|silent|limited POLICY PORT\n");
    return 1;
  }
  const std::string_view framework = argv[1];
  const int port = std::atoi(argv[4]);
  try {
    Limiter limiter({.policy_paths = {argv[3]}});
    const std::string_view mode = argv[2];
    HttpLimits limits(limiter, {.answers = {.headers_on_allowed = mode == "limited"}});
    HttpLimits* const used = mode == "limited" || mode == "silent" ? &limits : nullptr;
    const HttpAnswer constant = bench::constant_answer();
    const HttpAnswer* const fields = mode == "fields" ? &constant : nullptr;
    if (framework == "beast") bench::serve_beast(port, used, fields);
    if (framework == "httplib") bench::serve_httplib(port, used, fields);
    if (framework == "grpc") bench::serve_grpc(port, used);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "adapter_server: %s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "adapter_server: unknown framework\n");
  return 1;
}
