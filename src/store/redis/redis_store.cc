#include "store/redis/redis_store.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "store/redis/jitter.h"
#include "store/redis/key.h"
#include "store/redis/key_slot.h"

namespace sluice::store::redis {

namespace {

constexpr std::int64_t kKeyFailureLogInterval = 10'000'000'000;  // ns
// Connections to a server on each of which one volley at a time waits for replicas.
constexpr std::size_t kWaitingLinks = 4;
constexpr auto kRoleInterval = std::chrono::seconds(1);

Client::Options client_options(const RedisOptions& options, Topology topology) {
  return {.prefix = options.prefix,
          .timeout = options.timeout,
          .longest_backoff = options.probe_interval,
          .max_age = options.connection_max_age,
          .eviction_interval = options.proxy ? std::chrono::nanoseconds() : options.eviction_interval,
          .role_interval = topology == Topology::sentinel ? kRoleInterval : std::chrono::nanoseconds(),
          .groups = topology == Topology::cluster ? options.cluster_groups : 0,
          .replicas = options.wait_replicas,
          .replica_patience = options.wait_timeout,
          .calls = std::make_shared<CallPool>()};
}

Hello hello_of(const RedisOptions& options, const Target& target) {
  return {.user = {},
          .password = {},
          .database = target.database,
          .load_script = !options.proxy,
          .wants_master = target.topology == Topology::sentinel};
}

std::optional<Error> check_numbers(const RedisOptions& options, const Target& target) {
  if (options.timeout < std::chrono::milliseconds(1)) return Error{"Redis timeout: must be at least 1ms"};
  if (options.failures == 0) return Error{"Redis failures: must be at least 1"};
  if (options.probe_interval < std::chrono::milliseconds(1)) {
    return Error{"Redis probe interval: must be at least 1ms"};
  }
  if (options.connection_max_age.count() < 0) return Error{"Redis connection's greatest age: must not be negative"};
  if (options.prefix.find_first_of("{}") != std::string::npos) {
    return Error{"Redis key prefix: must not hold braces, as they name the hash tag"};
  }
  if (options.cluster_groups != 0 && target.topology != Topology::cluster) {
    return Error{"Redis cluster groups: only a cluster has them"};
  }
  if (options.wait_replicas > 0 && options.wait_timeout < std::chrono::milliseconds(1)) {
    return Error{"Redis wait timeout: must be at least 1ms"};
  }
  if (!options.proxy) return std::nullopt;
  if (target.topology != Topology::standalone) return Error{"Redis proxy: it has one address, and no master's name"};
  if (target.database != 0) return Error{"Redis proxy: has no database but 0, as proxies don't know SELECT"};
  if (options.wait_replicas > 0) return Error{"Redis proxy: proxies don't know WAIT, so wait_replicas must be 0"};
  return std::nullopt;
}

}  // namespace

class RedisStore::GiveBack final : public Step {
 public:
  explicit GiveBack(RedisStore& owner) : owner_(owner) { decisions = {&decision_, 1}; }

  void set(const Charge& charge, const Verb& what) {
    charge_ = charge;
    charges = {&charge_, 1};
    verb_ = what;
    verb = &verb_;
    failure = Failure::none;
  }
  void complete() override {
    owner_.metrics_.add(failure == Failure::none ? metrics::Counter::store_give_backs : metrics::Counter::store_losses);
    owner_.free_give_backs_.push_back(this);
  }

 private:
  RedisStore& owner_;
  Charge charge_;
  Verb verb_;
  Decision decision_;
};

std::shared_ptr<Nodes> make_nodes(const RedisOptions& options) {
  return std::make_shared<Nodes>(Node::Options{.failures = options.failures, .probe_interval = options.probe_interval});
}

std::optional<Error> check_options(const RedisOptions& options) {
  boost::asio::io_context io;
  metrics::Shard metrics;
  // Made and gone before anything runs.
  auto store = RedisStore::create(io, options, metrics);
  return store ? std::nullopt : std::optional(store.error());
}

Result<std::unique_ptr<RedisStore>> RedisStore::create(boost::asio::io_context& io, const RedisOptions& options,
                                                       metrics::Shard& metrics) {
  auto resolved = resolve_target(options.url, options.access);
  if (!resolved) return resolved.error();
  if (auto error = check_numbers(options, resolved->target)) return *std::move(error);
  std::unique_ptr<Tls> tls;
  if (resolved->target.tls) {
    auto made = Tls::create(options.access.tls);
    if (!made) return made.error();
    tls = *std::move(made);
  }
  std::unique_ptr<Tls> sentinel_tls;
  if (resolved->sentinel_over_tls) {
    auto made = Tls::create(resolved->sentinel_tls);
    if (!made) return made.error();
    sentinel_tls = *std::move(made);
  }
  for (const CredentialOptions& credentials : {resolved->credentials, resolved->sentinel_credentials}) {
    if (auto error = Credentials(credentials).refresh()) return Error{"Redis password: " + error->message};
  }
  return std::unique_ptr<RedisStore>(
      new RedisStore(io, options, *std::move(resolved), std::move(tls), std::move(sentinel_tls), metrics));
}

RedisStore::RedisStore(boost::asio::io_context& io, const RedisOptions& options, Resolved resolved,
                       std::unique_ptr<Tls> tls, std::unique_ptr<Tls> sentinel_tls, metrics::Shard& metrics)
    : io_(io),
      options_(options),
      topology_(resolved.target.topology),
      name_(resolved.target.to_text()),
      metrics_(metrics),
      nodes_(options.nodes != nullptr ? options.nodes : make_nodes(options)),
      script_(options.script != nullptr ? *options.script : check_script(options.script_style)),
      tls_(std::move(tls)),
      sentinel_tls_(std::move(sentinel_tls)),
      login_(resolved.credentials, hello_of(options, resolved.target)),
      guide_login_(topology_ == Topology::sentinel ? resolved.sentinel_credentials : resolved.credentials, {}),
      client_options_(client_options(options, topology_)) {
  if (topology_ == Topology::cluster) {
    route_.assign(kSlots, nullptr);
    SlotsClient::Owner& owner = *this;
    slots_ = std::make_unique<SlotsClient>(resolved.target.nodes, guide_login_, random_seed(), owner);
    guide_session_ = std::make_shared<Session>(io, *slots_, *slots_, tls_.get());
    guide_session_->start();
    return;
  }
  if (topology_ == Topology::sentinel) {
    SentinelClient::Owner& owner = *this;
    sentinels_ = std::make_unique<SentinelClient>(resolved.target.nodes, resolved.target.master, guide_login_,
                                                  random_seed(), owner);
    guide_session_ = std::make_shared<Session>(io, *sentinels_, *sentinels_, sentinel_tls_.get());
  }
  servers_.push_back(std::make_unique<Server>());
  servers_.back()->address = resolved.target.nodes.front();
  start_server(*servers_.back(), sentinels_ != nullptr ? this : nullptr, name_);
  if (guide_session_ != nullptr) guide_session_->start();
}

RedisStore::~RedisStore() {
  for (const auto& server : servers_) {
    for (const auto& link : server->links) link->stop();
  }
  if (guide_session_ != nullptr) guide_session_->stop();
}

void RedisStore::start_server(Server& server, Link::Finder* finder, const std::string& name) {
  const std::size_t many = options_.wait_replicas > 0 ? kWaitingLinks : 1;
  Client::Owner& owner = *this;
  for (std::size_t i = 0; i < many; ++i) {
    Client::Options options = client_options_;
    options.seed = random_seed();
    server.links.push_back(std::make_shared<Link>(io_, server.address, finder, login_, tls_.get(), script_, options,
                                                  nodes_->at(name), owner));
    server.links.back()->start();
  }
}

bool RedisStore::ready() const {
  return std::ranges::any_of(servers_, [](const auto& server) {
    return std::ranges::any_of(server->links, [](const auto& link) { return link->client().is_up(); });
  });
}

// -- checks -----------------------------------------------------------------------------------------------------------

Progress RedisStore::check(Check& check, Time now) {
  check.failure = Failure::none;
  if (check.charges.empty()) {
    check.admitted = true;
    return Progress::answered;
  }
  if (options_.script_style == ScriptStyle::literal && check.charges.size() > kMostLiteralKeys) {
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
  const std::int64_t steady_now = Session::now();
  const bool is_apart = find_groups(check);
  if (is_apart) return submit_split(check, now, steady_now);
  const std::uint64_t group = groups_.empty() ? 0 : groups_.front();
  check.failure =
      submit_to(pick(group), check, scratch_, now, group, steady_now, steady_now + options_.timeout.count());
  // An open breaker does not ask the store: the check is counted only as what `on_store_failure` made of it.
  if (check.failure == Failure::circuit_open) return Progress::answered;
  metrics_.add(metrics::Counter::store_checks);
  if (check.failure != Failure::none) {
    count(check.failure);
    return Progress::answered;
  }
  return Progress::pending;
}

Failure RedisStore::submit_to(Link* link, Check& check, Limits limits, Time now, std::uint64_t group,
                              std::int64_t steady_now, std::int64_t deadline) {
  if (link == nullptr) return Failure::unreachable;
  const Failure failure = link->client().submit_until(check, limits, now, steady_now, group, deadline);
  if (failure == Failure::none) link->wake_up();
  return failure;
}

// Which keys may share a call, by number from 1; nothing where all may. True: not all of these do.
bool RedisStore::find_groups(const Check& check) {
  groups_.clear();
  if (topology_ != Topology::cluster && !options_.proxy) return false;
  const KeyNaming naming(client_options_.prefix, client_options_.groups);
  for (const Charge& charge : check.charges) {
    key_scratch_.clear();
    append_redis_key(key_scratch_, naming, charge.limit->identity, charge.key);
    if (topology_ == Topology::cluster) {
      groups_.push_back(key_slot(key_scratch_) + 1U);
      continue;
    }
    // Seeded, so that nobody can make up values that share a number.
    static const std::uint64_t seed = random_seed();
    const std::string_view tag = hashed_part(key_scratch_);
    groups_.push_back(XXH3_64bits_withSeed(tag.data(), tag.size(), seed) | 1U);
  }
  return std::ranges::adjacent_find(groups_, std::not_equal_to{}) != groups_.end();
}

Link* RedisStore::pick(std::uint64_t group) const {
  const Server* const server =
      topology_ == Topology::cluster ? route_[static_cast<std::size_t>(group - 1)] : servers_.front().get();
  if (server == nullptr) return nullptr;
  if (server->links.size() == 1) return server->links.front().get();
  return std::ranges::min_element(server->links, {},
                                  [](const auto& link) {
                                    // One that is not connected comes last.
                                    return link->client().load() + (link->client().is_up() ? 0U : 1'000'000U);
                                  })
      ->get();
}

void RedisStore::cancel(Check& check) {
  for (const auto& split : splits_) {
    if (split->outer() == &check) {
      split->withdraw();
      return;
    }
  }
  for (const auto& server : servers_) {
    for (const auto& link : server->links) {
      if (link->client().cancel(check)) return;
    }
  }
}

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

// -- requests in steps ------------------------------------------------------------------------------------------------

Progress RedisStore::submit_split(Check& check, Time now, std::int64_t steady_now) {
  if (free_splits_.empty()) {
    SplitCheck::Owner& owner = *this;
    splits_.push_back(std::make_unique<SplitCheck>(owner));
    free_splits_.push_back(splits_.back().get());
  }
  // Nothing is taken anywhere when it is plain that some of it cannot be.
  for (const std::uint64_t group : groups_) {
    const Link* const link = pick(group);
    check.failure = link == nullptr ? Failure::unreachable : link->client().obstacle();
    if (check.failure == Failure::none) continue;
    if (check.failure != Failure::circuit_open) {
      metrics_.add(metrics::Counter::store_checks);
      count(check.failure);
    }
    return Progress::answered;
  }
  metrics_.add(metrics::Counter::store_checks);
  metrics_.add(metrics::Counter::store_splits);
  SplitCheck& split = *free_splits_.back();
  free_splits_.pop_back();
  split.start(check, scratch_, groups_, now, steady_now + options_.timeout.count());
  starting_ = &split;
  split.go();
  // Null: it has failed at once.
  return std::exchange(starting_, nullptr) == nullptr ? Progress::answered : Progress::pending;
}

Failure RedisStore::submit_part(SplitCheck& split, SplitCheck::Part& part) {
  Link* const link = pick(part.group);
  if (link != nullptr) part.link_serial = link->client().link_serial();
  return submit_to(link, part, part.limits, split.caller(), part.group, Session::now(), split.deadline());
}

// Sent once: it may have been carried out even if no answer comes.
void RedisStore::give_back(const SplitCheck::Part& part, std::size_t charge, const std::optional<Verb>& verb) {
  Link* const link = verb ? pick(part.group) : nullptr;
  // After a new connection it may be another server, which has not seen the charge.
  if (link == nullptr || link->client().link_serial() != part.link_serial) {
    metrics_.add(metrics::Counter::store_losses);
    return;
  }
  if (free_give_backs_.empty()) {
    give_backs_.push_back(std::make_unique<GiveBack>(*this));
    free_give_backs_.push_back(give_backs_.back().get());
  }
  GiveBack& step = *free_give_backs_.back();
  free_give_backs_.pop_back();
  step.set(part.own_charges[charge], *verb);
  const std::int64_t now = Session::now();
  step.failure =
      submit_to(link, step, {&part.limits[charge], 1}, Time{}, part.group, now, now + options_.timeout.count());
  if (step.failure != Failure::none) step.complete();
}

void RedisStore::split_done(SplitCheck& split) {
  Check* const outer = split.outer();
  free_splits_.push_back(&split);
  split.clear();
  if (outer == nullptr) return;
  count(outer->failure);
  if (starting_ == &split) {
    starting_ = nullptr;
  } else {
    outer->complete();
  }
}

// -- what clients tell ------------------------------------------------------------------------------------------------

void RedisStore::done(Check& check, Failure failure, std::int64_t at) {
  check.failure = failure;
  const bool is_step = splits_.size() > free_splits_.size() || give_backs_.size() > free_give_backs_.size();
  if (Step* const step = is_step ? dynamic_cast<Step*>(&check) : nullptr) {
    step->answered_at = at * 1'000;
  } else {
    count(failure);
  }
  check.complete();
}

void RedisStore::call_sent() { metrics_.add(metrics::Counter::store_calls); }

void RedisStore::replicas_missed() { metrics_.add(metrics::Counter::store_unconfirmed); }

void RedisStore::keys_evicted(std::uint64_t keys) {
  metrics_.add(metrics::Counter::store_evicted_keys, keys);
  log::warn("redis: evicts keys for want of memory: each that was a limit's begins anew, as if never used",
            {{"server", name_}, {"evicted", std::to_string(keys)}});
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
