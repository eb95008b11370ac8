// What an adapter costs a request that is let in, on the memory store: CPU time from its entry to its exit, the fields
// of the answer in the framework's response included. Making a request and destroying a response are the framework's
// own work and not counted. 10 000 users in turn, eight header fields, sixteen requests at a time as one turn of a
// server brings them.
#include <benchmark/benchmark.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <cstddef>
#include <ctime>
#include <string>
#include <vector>

#include "sluice/adapter/beast.h"
#include "sluice/adapter/httplib.h"
#include "sluice/http_limits.h"

namespace {

constexpr const char* kPolicy = R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { name: PerUser, algorithm: token_bucket, unit: second, requests_per_unit: 1000000000, burst: 1000000000 }
requests:
  trusted_proxies: []
  rate_limits:
    - actions: [ { request_headers: { header_name: x-user, descriptor_key: user } } ]
)";

const std::vector<std::string>& users() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> made;
    for (int i = 0; i < 10'000; ++i) made.push_back("user-" + std::to_string(i));
    return made;
  }();
  return all;
}

template <typename Set>
void set_fields(Set set) {
  set("Host", "shop.example");
  set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0");
  set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
  set("Accept-Language", "en-US,en;q=0.5");
  set("Accept-Encoding", "gzip, deflate, br");
  set("Connection", "keep-alive");
  set("Cookie", "session=0123456789abcdef");
  set("X-User", users().front());
}

class Shop {
 public:
  explicit Shop(const benchmark::State& state)
      : limits_(limiter_, {.answers = {.headers_on_allowed = state.range(0) != 0}}) {}
  sluice::HttpLimits& limits() { return limits_; }

 private:
  sluice::Limiter limiter_{{.policy_text = kPolicy}};
  sluice::HttpLimits limits_;
};

sluice::LimiterRequest by(const std::string& user) { return {.domain = "shop", .descriptors = {{{"user", user}}}}; }

constexpr std::size_t kAtOnce = 16;

// CPU time of this thread.
double thread_seconds() {
  timespec time{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// `prepare(i)` is not measured, `work()` is: kAtOnce requests.
template <typename Prepare, typename Work>
void measure(benchmark::State& state, Prepare prepare, Work work) {
  while (state.KeepRunningBatch(kAtOnce)) {
    for (std::size_t i = 0; i < kAtOnce; ++i) prepare(i);
    const double begin = thread_seconds();
    work();
    // The time of one: a batch counts as one measurement of each of its requests.
    state.SetIterationTime(thread_seconds() - begin);
  }
}

void run_httplib(benchmark::State& state, const httplib::Server::HandlerWithResponse& handler) {
  std::array<httplib::Request, kAtOnce> requests;
  std::array<httplib::Response, kAtOnce> responses;
  for (httplib::Request& request : requests) {
    request.method = "GET";
    request.target = "/articles/7";
    request.remote_addr = "192.0.2.7";
    set_fields([&](const char* name, const std::string& value) { request.headers.emplace(name, value); });
  }
  std::size_t next = 0;
  measure(
      state,
      [&](std::size_t i) {
        requests[i].headers.find("X-User")->second = users()[next++ % users().size()];
        responses[i].headers.clear();
      },
      [&] {
        for (std::size_t i = 0; i < kAtOnce; ++i) benchmark::DoNotOptimize(handler(requests[i], responses[i]));
      });
}

void httplib_by_mapping(benchmark::State& state) {
  Shop shop(state);
  run_httplib(state, sluice::httplib_limit(shop.limits()));
}
void httplib_by_program(benchmark::State& state) {
  Shop shop(state);
  run_httplib(state, sluice::httplib_limit(shop.limits(), [](const httplib::Request& request) {
                return by(request.headers.find("X-User")->second);
              }));
}

namespace http = boost::beast::http;

using Request = http::request<http::empty_body>;

Request get_article() {
  Request request(http::verb::get, "/articles/7", 11);
  set_fields([&](const char* name, const std::string& value) { request.set(name, value); });
  return request;
}

// The check with the framework's views and without a framework's response: what one's own adapter would do.
void bare_check(benchmark::State& state) {
  Shop shop(state);
  const Request request = get_article();
  std::vector<sluice::HeaderField> headers;
  sluice::HttpRequest views = sluice::beast_request(request, "192.0.2.7", headers);
  sluice::HttpAnswer answer;
  std::size_t next = 0;
  measure(
      state, [](std::size_t /*i*/) {},
      [&] {
        for (std::size_t i = 0; i < kAtOnce; ++i) {
          headers.back().value = users()[next++ % users().size()];
          shop.limits().check(views, answer);
          benchmark::DoNotOptimize(answer.allowed);
        }
      });
}

void beast_by_mapping(benchmark::State& state) {
  Shop shop(state);
  boost::asio::io_context io{1};
  boost::beast::tcp_stream stream(io);
  std::vector<Request> requests(kAtOnce, get_article());
  std::vector<http::response<http::empty_body>> responses(kAtOnce);
  std::size_t next = 0;
  measure(
      state,
      [&](std::size_t i) {
        requests[i].set("X-User", users()[next++ % users().size()]);
        responses[i] = {};
        io.restart();
      },
      [&] {
        for (std::size_t i = 0; i < kAtOnce; ++i) {
          sluice::async_limit(
              shop.limits(), stream, requests[i], "192.0.2.7",
              [&responses, i](const sluice::HttpAnswer& answer) { sluice::put_answer(answer, responses[i]); });
        }
        io.poll();
      });
}

BENCHMARK(bare_check)->ArgName("headers_on_allowed")->Arg(1)->Arg(0)->UseManualTime();
BENCHMARK(httplib_by_mapping)->ArgName("headers_on_allowed")->Arg(1)->Arg(0)->UseManualTime();
BENCHMARK(httplib_by_program)->ArgName("headers_on_allowed")->Arg(1)->Arg(0)->UseManualTime();
BENCHMARK(beast_by_mapping)->ArgName("headers_on_allowed")->Arg(1)->Arg(0)->UseManualTime();

}  // namespace

BENCHMARK_MAIN();
