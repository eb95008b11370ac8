#include <optional>
#include <stdexcept>
#include <thread>

#include "sluice/adapter/httplib.h"
#include "tests/integration/adapter/http_servers.h"

namespace sluice::testing {
namespace {

class HttplibServer final : public LimitedServer {
 public:
  HttplibServer(ArticleShop& shop, KeysBy keys) {
    if (keys == KeysBy::mapping) {
      server_.set_pre_routing_handler(httplib_limit(shop.limits()));
    } else {
      server_.set_pre_routing_handler(httplib_limit(shop.limits(), [](const httplib::Request& request) {
        return ArticleShop::by_user(request.get_header_value("X-User"));
      }));
    }
    const auto handler = [this](const httplib::Request& /*request*/, httplib::Response& response) {
      ++handled_;
      response.set_content("done", "text/plain");
    };
    server_.Get(".*", handler).Post(".*", handler);
    port_ = server_.bind_to_any_port("127.0.0.1");
    if (port_ < 0) throw std::runtime_error("cannot bind");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~HttplibServer() override {
    server_.stop();
    thread_.join();
  }
  [[nodiscard]] std::string address() const override { return "127.0.0.1:" + std::to_string(port_); }

 private:
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<LimitedServer> start_httplib(ArticleShop& shop, KeysBy keys) {
  return std::make_unique<HttplibServer>(shop, keys);
}

}  // namespace sluice::testing
