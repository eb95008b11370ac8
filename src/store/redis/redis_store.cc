#include "store/redis/redis_store.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "store/redis/give_back.h"
#include "store/redis/jitter.h"
#include "store/redis/key.h"
#include "store/redis/key_slot.h"

namespace sluice::store::redis {

namespace {

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
          .trial = options.proxy ? Client::Options::Trial::lenient : Client::Options::Trial::strict,
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
          .wants_master = target.topology == Topology::sentinel,
          .wants_alone = target.topology == Topology::standalone && !options.proxy};
}

}  // namespace

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
  // What they say while the store runs is said once for the stores of all threads.
  const std::shared_ptr<Nodes> nodes = options.nodes != nullptr ? options.nodes : make_nodes(options);
  std::unique_ptr<Tls> tls;
  if (resolved->target.tls) {
    auto made = Tls::create(options.access.tls, &nodes->notices());
    if (!made) return made.error();
    tls = *std::move(made);
  }
  std::unique_ptr<Tls> sentinel_tls;
  if (resolved->sentinel_over_tls) {
    auto made = Tls::create(resolved->sentinel_tls, &nodes->notices());
    if (!made) return made.error();
    sentinel_tls = *std::move(made);
  }
  for (const CredentialOptions& credentials : {resolved->credentials, resolved->sentinel_credentials}) {
    if (auto error = Credentials(credentials).refresh()) return Error{"Redis password: " + error->message};
  }
  return std::unique_ptr<RedisStore>(
      new RedisStore(io, options, *std::move(resolved), nodes, std::move(tls), std::move(sentinel_tls), metrics));
}

RedisStore::RedisStore(boost::asio::io_context& io, const RedisOptions& options, Resolved resolved,
                       std::shared_ptr<Nodes> nodes, std::unique_ptr<Tls> tls, std::unique_ptr<Tls> sentinel_tls,
                       metrics::Shard& metrics)
    : io_(io),
      options_(options),
      topology_(resolved.target.topology),
      master_(resolved.target.master),
      name_(resolved.target.to_text()),
      metrics_(metrics),
      nodes_(std::move(nodes)),
      script_(options.script != nullptr ? *options.script : check_script(options.script_style)),
      tls_(std::move(tls)),
      sentinel_tls_(std::move(sentinel_tls)),
      login_(resolved.credentials, hello_of(options, resolved.target), &nodes_->notices()),
      guide_login_(topology_ == Topology::sentinel ? resolved.sentinel_credentials : resolved.credentials, {},
                   &nodes_->notices()),
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
    server.links.back()->node().join();
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
  if (link == nullptr) return unserved();
  const Failure failure = link->client().submit_until(check, limits, now, steady_now, group, deadline);
  if (failure == Failure::none) link->wake_up();
  return failure;
}

// The key's slot is no node's, as far as is known.
Failure RedisStore::unserved() {
  nodes_->unserved_check(Session::now());
  return Failure::slot_unserved;
}

// Which keys may share a call, by number from 1; nothing where all may. True: not all of these do.
bool RedisStore::find_groups(const Check& check) {
  groups_.clear();
  if (topology_ == Topology::cluster || options_.proxy) group_by_place(check);
  if (options_.script_style == ScriptStyle::literal && check.charges.size() > kMostLiteralKeys) {
    groups_.resize(check.charges.size(), 1);
    cut_groups();
  }
  return std::ranges::adjacent_find(groups_, std::not_equal_to{}) != groups_.end();
}

void RedisStore::group_by_place(const Check& check) {
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
}

// Groups of more keys than a call in literal style has become several.
void RedisStore::cut_groups() {
  for (std::size_t i = groups_.size(); i > 0; --i) {
    std::uint64_t& group = groups_[i - 1];
    const auto before = std::count(groups_.begin(), groups_.begin() + static_cast<std::ptrdiff_t>(i - 1), group);
    group += static_cast<std::uint64_t>(before) / kMostLiteralKeys * kSlots;
  }
}

Link* RedisStore::pick(std::uint64_t group) const {
  const Server* const server = topology_ == Topology::cluster ? route_[slot_of(group)] : servers_.front().get();
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

void RedisStore::call_sent(std::size_t requests) {
  metrics_.add(metrics::Counter::store_calls);
  metrics_.observe(metrics::Histogram::store_batch, static_cast<std::int64_t>(requests));
}

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
  if (!nodes_->may_tell_of_key(Session::now())) return;
  log::warn("redis: a check could not be answered", {{"reason", to_text(failure)}, {"detail", words}});
}

}  // namespace sluice::store::redis
