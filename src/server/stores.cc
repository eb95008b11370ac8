#include "server/stores.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "compat/counting_store.h"
#include "config/redis_options.h"
#include "metrics/text_format.h"
#include "store/denial_cache.h"
#include "store/fallback_store.h"
#include "store/redis/redis_store.h"

namespace sluice::server {

Stores::Stores(const config::Settings& settings) : settings_(settings) {}

std::string Stores::name() const {
  if (settings_.redis_url.empty()) return "memory";
  const store::redis::RedisOptions options = config::redis_options(settings_, settings_.redis_timeout);
  const auto resolved = store::redis::resolve_target(options.url, options.access);
  return resolved ? "Redis " + resolved->target.to_text() : "Redis";
}

void Stores::start(metrics::Registry& registry) {
  memory_ = std::make_shared<store::MemoryStore>(settings_.memory_max_keys);
  expose_memory(registry);
}

std::shared_ptr<store::Store> Stores::make(Worker& worker) {
  std::shared_ptr<store::Store> store;
  if (settings_.redis_url.empty()) {
    store = std::make_shared<store::BanStore>(memory_, memory_bans_);
  } else {
    store = make_shared_store(worker, settings_, main_);
  }
  if (settings_.compat != config::Compat::envoyproxy) return store;
  compat::CountingStore::Stores stores{.main = std::move(store), .per_second = nullptr};
  if (settings_.per_second != nullptr && !settings_.redis_url.empty()) {
    stores.per_second = make_shared_store(worker, *settings_.per_second, per_second_);
  }
  return std::make_shared<compat::CountingStore>(std::move(stores), !settings_.envoy.stops_when_over);
}

std::shared_ptr<store::Store> Stores::make_shared_store(Worker& worker, const config::Settings& settings,
                                                        Shared& shared) {
  store::redis::RedisOptions options = config::redis_options(settings, settings.redis_timeout);
  // The workers are made one after the other, by one thread.
  if (shared.nodes == nullptr) shared.nodes = store::redis::make_nodes(options);
  options.nodes = shared.nodes;
  auto redis = store::redis::RedisStore::create(worker.io, options, worker.metrics);
  if (!redis) throw std::runtime_error("store.redis: " + redis.error().message);
  std::unique_ptr<store::Store> primary = *std::move(redis);
  if (settings.redis_denial_cache_max.count() > 0) {
    primary = std::make_unique<store::DenialCache>(std::move(primary), settings.redis_denial_cache_max, denial_epochs_,
                                                   worker.metrics);
  }
  primary = std::make_unique<store::BanStore>(std::move(primary), shared.bans);
  return std::make_shared<store::FallbackStore>(std::move(primary), *memory_, shared.readiness, worker.metrics);
}

std::string Stores::trouble() const {
  std::string lines;
  for (const Shared* shared : {&main_, &per_second_}) {
    if (shared->nodes != nullptr) lines += shared->nodes->trouble();
  }
  return lines;
}

void Stores::tend() {
  constexpr int most_at_once = 8;
  for (int joined = 0; joined < most_at_once && memory_->join_pages();) ++joined;
}

void Stores::expose_memory(metrics::Registry& registry) {
  const auto figure = [memory = memory_](std::uint64_t store::MemoryStore::Figures::* member) {
    return [memory, member] { return memory->figures().*member; };
  };
  using Figures = store::MemoryStore::Figures;
  registry.add_gauge("sluice_memory_keys", "Counters held in memory.", figure(&Figures::keys));
  registry.add_gauge("sluice_memory_bytes", "Memory that the counters take.", figure(&Figures::bytes));
  registry.add_counter("sluice_memory_evicted_total", "Counters dropped for want of room, not yet as fresh ones.",
                       figure(&Figures::evicted));
  registry.add_counter("sluice_memory_expired_total", "Counters dropped because they equalled fresh ones.",
                       figure(&Figures::expired));
}

void Stores::expose_shared(metrics::Registry& registry) {
  registry.add_families([this](metrics::TextFormat& text) {
    if (main_.nodes == nullptr) return;
    const std::vector<store::redis::Nodes::Server> servers = main_.nodes->servers();
    const bool is_failing =
        main_.nodes->unserved().is_failing() ||
        std::ranges::any_of(servers, [](const store::redis::Nodes::Server& server) { return server.is_failing; });
    text.family("sluice_store_up", "gauge",
                "1: the shared store answers; 0: on_store_failure does, at least for some keys.");
    text.sample({}, std::uint64_t{main_.readiness.has_answered() && !is_failing ? 1U : 0U});
    text.family("sluice_store_breaker_open", "gauge",
                "1: this server of the shared store has failed so often that it is only probed.");
    for (const store::redis::Nodes::Server& server : servers) {
      text.sample({{"server", server.name}}, std::uint64_t{server.is_open ? 1U : 0U});
    }
  });
}

}  // namespace sluice::server
