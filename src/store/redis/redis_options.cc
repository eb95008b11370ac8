#include "store/redis/redis_options.h"

namespace sluice::store::redis {

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
  if (options.wait_replicas > 0 && options.wait_timeout > options.timeout) {
    return Error{
        "Redis wait timeout: must not be above the timeout of a check, which is answered then in any case: raise "
        "store.redis.timeout or lower store.redis.wait_timeout"};
  }
  if (!options.proxy) return std::nullopt;
  if (target.topology != Topology::standalone) return Error{"Redis proxy: it has one address, and no master's name"};
  if (target.database != 0) return Error{"Redis proxy: has no database but 0, as proxies don't know SELECT"};
  if (options.wait_replicas > 0) return Error{"Redis proxy: proxies don't know WAIT, so wait_replicas must be 0"};
  return std::nullopt;
}

std::shared_ptr<Nodes> make_nodes(const RedisOptions& options) {
  return std::make_shared<Nodes>(Node::Options{.failures = options.failures, .probe_interval = options.probe_interval});
}

}  // namespace sluice::store::redis
