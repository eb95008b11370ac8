#include "tests/integration/adapter/article_shop.h"

namespace sluice::testing {
namespace {

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
  - key: route
    value: GET /paced
    rate_limit: { name: Paced, algorithm: leaky_bucket, unit: second, requests_per_unit: 20, queue: 5, delay: hold }
  - key: route
    value: GET /crowded
    rate_limit: { name: Crowded, algorithm: leaky_bucket, unit: hour, requests_per_unit: 1, queue: 5, delay: hold }
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
        - route: { patterns: [ GET /worded, GET /paced, GET /crowded ] }
)";

}  // namespace

ArticleShop::ArticleShop(bool on_redis) : LimitedRedis(kPolicy, on_redis) {}

std::optional<LimiterRequest> ArticleShop::by_user(std::string_view user) {
  if (user.empty()) return std::nullopt;
  return LimiterRequest{.domain = "shop", .descriptors = {{{"route", "POST /articles"}, {"user", std::string(user)}}}};
}

}  // namespace sluice::testing
