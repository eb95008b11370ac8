// A client that keeps to a third party's limit: it waits by a token bucket of its own, and when it is told to come back
// later all the same, it does so, with all of its threads. The third party here is a server in this program, which has
// less to give than it says.
#include <httplib.h>
#include <sluice/adapter/httplib.h>
#include <sluice/token_bucket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using Instant = std::chrono::steady_clock::time_point;

class PartnerClient {
 public:
  explicit PartnerClient(int port) : port_(port) {}

  /// Waits for its turn; repeats what was refused, when the answer says that it may.
  int get(const std::string& path) {
    for (;;) {
      bucket_.wait();
      std::this_thread::sleep_until(not_before());
      httplib::Client client("127.0.0.1", port_);
      const httplib::Result result = client.Get(path);
      if (!result || result->status != 429) return result ? result->status : 0;
      ++refusals_;
      const int seconds = std::atoi(result->get_header_value("Retry-After").c_str());
      hold_until(std::chrono::steady_clock::now() + std::chrono::seconds(seconds < 1 ? 1 : seconds));
    }
  }
  [[nodiscard]] int refusals() const { return refusals_; }

 private:
  Instant not_before() {
    const std::scoped_lock lock(mutex_);
    return not_before_;
  }
  void hold_until(Instant instant) {
    const std::scoped_lock lock(mutex_);
    if (instant > not_before_) not_before_ = instant;
  }

  const int port_;
  sluice::TokenBucket bucket_{{.rate = 100, .period = 1s, .burst = 10}};  // what their documents say
  std::mutex mutex_;
  Instant not_before_;
  std::atomic<int> refusals_{0};
};

constexpr const char* kTheirPolicy = R"(
domain: partner
descriptors:
  - key: caller
    rate_limit: { algorithm: token_bucket, unit: second, requests_per_unit: 5, burst: 5 }
)";

}  // namespace

int main() {
  sluice::Limiter limiter({.policy_text = kTheirPolicy});
  sluice::HttpLimits limits(limiter);
  httplib::Server partner;
  partner.set_pre_routing_handler(sluice::httplib_limit(limits, [](const httplib::Request& request) {
    return sluice::LimiterRequest{.domain = "partner", .descriptors = {{{"caller", request.remote_addr}}}};
  }));
  partner.Get("/data", [](const httplib::Request& /*request*/, httplib::Response& response) {
    response.set_content("data", "text/plain");
  });
  const int port = partner.bind_to_any_port("127.0.0.1");
  std::thread serving([&] { partner.listen_after_bind(); });

  PartnerClient client(port);
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 5; ++call) good += client.get("/data") == 200 ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::cout << good << " of 10 calls answered\n"
            << (client.refusals() > 0 ? "some were refused at first, and repeated in time\n" : "none was refused\n");
  partner.stop();
  serving.join();
}
