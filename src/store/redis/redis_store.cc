#include "store/redis/redis_store.h"

#include <random>
#include <utility>

#include "base/log.h"

namespace sluice::store::redis {

namespace {

constexpr std::int64_t kKeyFailureLogInterval = 10'000'000'000;  // ns

// The key that probes charge. No limit of a policy has this identity, as theirs hold a '/'.
CountedLimit make_probe_limit() {
  CountedLimit limit;
  limit.numbers = {.algorithm = Algorithm::token_bucket, .rate = 1'000, .burst = 1'000};
  limit.identity = "probe";
  return limit;
}

Client::Options client_options(const RedisOptions& options) {
  return {.timeout = options.timeout,
          .failures = options.failures,
          .probe_interval = options.probe_interval,
          .seed = (std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}()};
}

}  // namespace

Result<std::unique_ptr<RedisStore>> RedisStore::create(boost::asio::io_context& io, const RedisOptions& options,
                                                       metrics::Shard& metrics) {
  auto endpoint = parse_url(options.url);
  if (!endpoint) return endpoint.error();
  if (options.timeout < std::chrono::milliseconds(1)) return Error{"Redis timeout: must be at least 1ms"};
  if (options.failures == 0) return Error{"Redis failures: must be at least 1"};
  if (options.probe_interval < std::chrono::milliseconds(1)) {
    return Error{"Redis probe interval: must be at least 1ms"};
  }
  if (options.prefix.find_first_of("{}") != std::string::npos) {
    return Error{"Redis key prefix: must not hold braces, as they name the hash tag"};
  }
  return std::unique_ptr<RedisStore>(new RedisStore(io, options, *std::move(endpoint), metrics));
}

RedisStore::RedisStore(boost::asio::io_context& io, const RedisOptions& options, Endpoint endpoint,
                       metrics::Shard& metrics)
    : endpoint_(std::move(endpoint)),
      prefix_(options.prefix),
      metrics_(metrics),
      probe_limit_(make_probe_limit()),
      probe_numbers_(*RedisLimit::compile(probe_limit_.numbers)),
      probe_charge_{.limit = &probe_limit_, .key = {}, .cost = 1},
      client_(endpoint_, options.script != nullptr ? *options.script : check_script(), client_options(options), *this),
      session_(std::make_shared<Session>(io, client_, endpoint_)) {
  probe_check_.charges = {&probe_charge_, 1};
  probe_check_.decisions = {&probe_decision_, 1};
  session_->start();
}

RedisStore::~RedisStore() { session_->stop(); }

Progress RedisStore::check(Check& check, Time now) {
  check.failure = Failure::none;
  if (check.charges.empty()) {
    check.admitted = true;
    return Progress::answered;
  }
  Call& call = client_.new_call();
  for (const Charge& charge : check.charges) {
    auto limit = find_limit(*charge.limit);
    if (limit == nullptr) {
      client_.discard(call);
      check.failure = Failure::unsupported;
      log_key_failure(check.failure, charge.limit->identity);
      return Progress::answered;
    }
    call.limits.push_back(std::move(limit));
  }
  write_check(call.text, prefix_, check.charges, call.limits, now);
  call.check = &check;
  check.failure = client_.submit(call, Session::now());
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

Failure RedisStore::read(Call& call, const redisReply& reply) {
  const Failure failure = read_check(reply, call.limits, call.is_probe ? probe_check_ : *call.check);
  if (is_of_one_key(failure)) log_key_failure(failure, text_of(reply));
  return failure;
}

void RedisStore::done(Check& check, Failure failure) {
  check.failure = failure;
  count(failure);
  check.complete();
}

void RedisStore::write_probe(Call& call) {
  call.limits.push_back(probe_numbers_);
  write_check(call.text, prefix_, probe_check_.charges, call.limits, Time{});
}

void RedisStore::state_changed(bool up, Failure reason, std::string_view detail) {
  if (up) {
    log::info("redis: connected, limits are shared", {{"server", endpoint_.to_text()}});
  } else if (detail.empty()) {
    log::warn("redis: not available", {{"server", endpoint_.to_text()}, {"reason", to_text(reason)}});
  } else {
    log::warn("redis: not available",
              {{"server", endpoint_.to_text()}, {"reason", to_text(reason)}, {"detail", detail}});
  }
}

void RedisStore::count(Failure failure) {
  if (failure == Failure::none) return;
  metrics_.add(metrics::Counter::store_failures);
  if (failure == Failure::timeout) metrics_.add(metrics::Counter::store_timeouts);
}

// A key that is wrong fails each check on it, so these lines are rationed.
void RedisStore::log_key_failure(Failure failure, std::string_view detail) {
  const std::int64_t now = Session::now();
  if (key_failure_logged_ != 0 && now - key_failure_logged_ < kKeyFailureLogInterval) return;
  key_failure_logged_ = now;
  log::warn("redis: a check could not be answered", {{"reason", to_text(failure)}, {"detail", detail}});
}

}  // namespace sluice::store::redis
