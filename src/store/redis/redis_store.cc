#include "store/redis/redis_store.h"

#include <random>
#include <utility>

#include "base/log.h"

namespace sluice::store::redis {

namespace {

constexpr std::int64_t kKeyFailureLogInterval = 10'000'000'000;  // ns

std::uint64_t random_seed() { return (std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}(); }

Client::Options client_options(const RedisOptions& options) {
  return {.prefix = options.prefix,
          .timeout = options.timeout,
          .longest_backoff = options.probe_interval,
          .max_age = options.connection_max_age,
          .eviction_interval = options.eviction_interval,
          .seed = random_seed()};
}

}  // namespace

std::shared_ptr<Node> make_node(const RedisOptions& options) {
  const auto endpoint = parse_url(options.url);
  const auto tell = [server = endpoint ? endpoint->to_text() : std::string()](bool up, Failure reason,
                                                                              std::string_view detail) {
    if (up) {
      log::info("redis: connected, limits are shared", {{"server", server}});
    } else if (detail.empty()) {
      log::warn("redis: not available", {{"server", server}, {"reason", to_text(reason)}});
    } else {
      log::warn("redis: not available", {{"server", server}, {"reason", to_text(reason)}, {"detail", detail}});
    }
  };
  return std::make_shared<Node>(
      Node::Options{.failures = options.failures, .probe_interval = options.probe_interval, .seed = random_seed()},
      tell);
}

Result<std::unique_ptr<RedisStore>> RedisStore::create(boost::asio::io_context& io, const RedisOptions& options,
                                                       metrics::Shard& metrics) {
  auto endpoint = parse_url(options.url);
  if (!endpoint) return endpoint.error();
  if (options.timeout < std::chrono::milliseconds(1)) return Error{"Redis timeout: must be at least 1ms"};
  if (options.failures == 0) return Error{"Redis failures: must be at least 1"};
  if (options.probe_interval < std::chrono::milliseconds(1)) {
    return Error{"Redis probe interval: must be at least 1ms"};
  }
  if (options.connection_max_age.count() < 0) return Error{"Redis connection's greatest age: must not be negative"};
  if (options.prefix.find_first_of("{}") != std::string::npos) {
    return Error{"Redis key prefix: must not hold braces, as they name the hash tag"};
  }
  return std::unique_ptr<RedisStore>(new RedisStore(io, options, *std::move(endpoint), metrics));
}

RedisStore::RedisStore(boost::asio::io_context& io, const RedisOptions& options, Endpoint endpoint,
                       metrics::Shard& metrics)
    : endpoint_(std::move(endpoint)),
      metrics_(metrics),
      node_(options.node != nullptr ? options.node : make_node(options)),
      style_(options.script_style),
      client_(endpoint_, options.script != nullptr ? *options.script : check_script(options.script_style),
              client_options(options), *node_, *this),
      session_(std::make_shared<Session>(io, client_, *node_, endpoint_)) {
  session_->start();
}

RedisStore::~RedisStore() { session_->stop(); }

Progress RedisStore::check(Check& check, Time now) {
  check.failure = Failure::none;
  if (check.charges.empty()) {
    check.admitted = true;
    return Progress::answered;
  }
  if (style_ == ScriptStyle::literal && check.charges.size() > kMostLiteralKeys) {
    check.failure = Failure::unsupported;
    bad_key(check.failure, "more keys than a call in literal style has");
    return Progress::answered;
  }
  return submit(check, now);
}

Progress RedisStore::apply(Check& check, Time now) {
  if (check.verb->kind == Verb::Kind::peek) return this->check(check, now);
  if (!has_verb(check.charges[0].limit->numbers.algorithm, check.verb->kind)) {
    check.failure = Failure::unsupported;
    return Progress::answered;
  }
  check.failure = Failure::none;
  return submit(check, now);
}

Progress RedisStore::submit(Check& check, Time now) {
  scratch_.clear();
  for (const Charge& charge : check.charges) {
    auto limit = find_limit(*charge.limit);
    if (limit == nullptr) {
      check.failure = Failure::unsupported;
      bad_key(check.failure, charge.limit->identity);
      return Progress::answered;
    }
    scratch_.push_back(std::move(limit));
  }
  check.failure = client_.submit(check, scratch_, now, Session::now());
  // An open breaker does not ask the store: the check is counted only as what `on_store_failure` made of it.
  if (check.failure == Failure::circuit_open) return Progress::answered;
  metrics_.add(metrics::Counter::store_checks);
  if (check.failure != Failure::none) {
    count(check.failure);
    return Progress::answered;
  }
  session_->wake_up();
  return Progress::pending;
}

void RedisStore::cancel(Check& check) { client_.cancel(check); }

std::shared_ptr<const RedisLimit> RedisStore::find_limit(const CountedLimit& limit) {
  if (limit.id < limits_.size() && limits_[limit.id] != nullptr && limits_[limit.id]->numbers() == limit.numbers) {
    return limits_[limit.id];
  }
  auto compiled = RedisLimit::compile(limit.numbers);
  if (!compiled) return nullptr;
  if (limit.id >= limits_.size()) limits_.resize(limit.id + 1);
  limits_[limit.id] = *std::move(compiled);
  return limits_[limit.id];
}

void RedisStore::done(Check& check, Failure failure) {
  check.failure = failure;
  count(failure);
  check.complete();
}

void RedisStore::call_sent() { metrics_.add(metrics::Counter::store_calls); }

void RedisStore::keys_evicted(std::uint64_t keys) {
  metrics_.add(metrics::Counter::store_evicted_keys, keys);
  log::warn("redis: evicts keys for want of memory: each that was a limit's begins anew, as if never used",
            {{"server", endpoint_.to_text()}, {"evicted", std::to_string(keys)}});
}

void RedisStore::count(Failure failure) {
  if (failure == Failure::none) return;
  metrics_.add(metrics::Counter::store_failures);
  if (failure == Failure::timeout) metrics_.add(metrics::Counter::store_timeouts);
}

// A key that is wrong fails each check on it, so these lines are rationed.
void RedisStore::bad_key(Failure failure, std::string_view words) {
  const std::int64_t now = Session::now();
  if (key_failure_logged_ != 0 && now - key_failure_logged_ < kKeyFailureLogInterval) return;
  key_failure_logged_ = now;
  log::warn("redis: a check could not be answered", {{"reason", to_text(failure)}, {"detail", words}});
}

}  // namespace sluice::store::redis
