#include <cstdlib>
#include <limits>

#include "adapters/server.h"
#include "sluice/adapter/httplib.h"

namespace sluice::bench {

void serve_httplib(int port, HttpLimits* limits, const HttpAnswer* fields) {
  httplib::Server server;
  server.set_keep_alive_max_count(std::numeric_limits<std::size_t>::max());
  server.set_tcp_nodelay(true);
  if (limits != nullptr) server.set_pre_routing_handler(httplib_limit(*limits));
  server.Get(".*", [fields](const httplib::Request& /*request*/, httplib::Response& response) {
    if (fields != nullptr) put_answer(*fields, response);
    response.set_content("done", "text/plain");
  });
  std::exit(server.listen("127.0.0.1", port) ? 0 : 1);
}

}  // namespace sluice::bench
