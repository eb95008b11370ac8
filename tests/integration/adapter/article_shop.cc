#include "tests/integration/adapter/article_shop.h"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "base/log.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPolicy = R"(
domain: shop
descriptors:
  - key: route
    value: POST /articles
    descriptors:
      - key: user
        rate_limit: { name: ArticleCreate, algorithm: token_bucket, period: 366d, requests_per_unit: 3, on_store_failure: deny }
  - key: route
    value: GET /articles
    descriptors:
      - key: remote_address
        rate_limit: { name: ArticleRead, algorithm: token_bucket, period: 366d, requests_per_unit: 3, on_store_failure: local }
  - key: route
    value: GET /open
    descriptors:
      - key: remote_address
        rate_limit: { name: Open, algorithm: token_bucket, period: 366d, requests_per_unit: 3, on_store_failure: allow }
  - key: route
    value: GET /worded
    rate_limit: { name: Worded, algorithm: fixed_window, unit: day, requests_per_unit: 0, body: '{"code":429,"message":"请求过于频繁"}' }
requests:
  trusted_proxies: []
  rate_limits:
    - actions:
        - route: { patterns: [ POST /articles ] }
        - request_headers: { header_name: X-User, descriptor_key: user, on_missing: deny }
    - actions:
        - route: { patterns: [ GET /articles, GET /open ] }
        - remote_address: {}
    - actions:
        - route: { patterns: [ GET /worded ] }
)";

}  // namespace

ArticleShop::ArticleShop(bool on_redis, const HttpAnswerOptions& answers) {
  log::configure(log::Level::error, log::Format::text);
  LimiterOptions options{.policy_text = kPolicy};
  if (on_redis) {
    redis_ = std::make_unique<RedisServer>();
    options.redis_url = redis_->url();
    options.redis_timeout = 5s;
  }
  limiter_ = std::make_unique<Limiter>(options);
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (!limiter_->ready()) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("Redis does not serve the limiter");
    std::this_thread::sleep_for(1ms);
  }
  limits_ = std::make_unique<HttpLimits>(*limiter_, HttpLimitsOptions{.answers = answers});
}

std::optional<LimiterRequest> ArticleShop::by_user(std::string_view user) {
  if (user.empty()) return std::nullopt;
  return LimiterRequest{.domain = "shop", .descriptors = {{{"route", "POST /articles"}, {"user", std::string(user)}}}};
}

}  // namespace sluice::testing
