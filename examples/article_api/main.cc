// A server of articles with limits in front of it: usage: article_api POLICY REDIS_URL. Prints its port.
#include <httplib.h>
#include <sluice/adapter/httplib.h>

#include <atomic>
#include <exception>
#include <iostream>
#include <string>

namespace {

int serve(const char* policy, const char* redis_url) {
  sluice::Limiter limiter({.policy_paths = {policy}, .redis_url = redis_url});
  sluice::HttpLimits limits(limiter);

  httplib::Server server;
  server.set_pre_routing_handler(sluice::httplib_limit(limits));

  std::atomic<int> articles{0};
  server.Post("/articles", [&](const httplib::Request& /*request*/, httplib::Response& response) {
    response.status = 201;
    response.set_header("Location", "/articles/" + std::to_string(++articles));
  });
  server.Get(R"(/articles/(\d+))", [](const httplib::Request& request, httplib::Response& response) {
    response.set_content("article " + request.matches[1].str() + "\n", "text/plain");
  });
  std::cout << server.bind_to_any_port("127.0.0.1") << std::endl;
  return server.listen_after_bind() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: article_api POLICY REDIS_URL\n";
    return 2;
  }
  try {
    return serve(argv[1], argv[2]);
  } catch (const std::exception& problem) {
    std::cerr << problem.what() << "\n";
    return 1;
  }
}
