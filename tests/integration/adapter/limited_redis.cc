#include "tests/integration/adapter/limited_redis.h"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "base/log.h"

namespace sluice::testing {

LimitedRedis::LimitedRedis(const std::string& policy, bool on_redis, const HttpAnswerOptions& answers) {
  using namespace std::chrono_literals;
  log::configure(log::Level::error, log::Format::text);
  LimiterOptions options{.policy_text = policy};
  if (on_redis) {
    redis_ = std::make_unique<RedisServer>();
    options.redis_url = redis_->url();
    options.redis_timeout = 5s;
  }
  limiter_ = std::make_unique<Limiter>(options);
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!limiter_->ready()) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("Redis does not serve the limiter");
    std::this_thread::sleep_for(1ms);
  }
  limits_ = std::make_unique<HttpLimits>(*limiter_, HttpLimitsOptions{.answers = answers});
}

}  // namespace sluice::testing
