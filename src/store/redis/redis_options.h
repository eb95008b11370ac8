// What a store in Redis is made of, and what cannot be.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "store/redis/nodes.h"
#include "store/redis/script.h"
#include "store/redis/target.h"

namespace sluice::store::redis {

struct RedisOptions {
  std::string url = "redis://127.0.0.1:6379";                        ///< see parse_url
  std::string prefix = "sluice:";                                    ///< of all keys; without braces
  std::chrono::nanoseconds timeout = std::chrono::milliseconds(20);  ///< from 1 ms: of a check, the network included
  unsigned failures = 5;  ///< in a row, until a server is not asked any more (1 …)
  std::chrono::nanoseconds probe_interval = std::chrono::milliseconds(500);  ///< ± 20 %: then it is tried again
  std::chrono::nanoseconds connection_max_age{};  ///< ± 20 %: then the connection is made anew; 0: no limit
  /// Between looks at what the server has evicted, by one of the threads; 0: none.
  std::chrono::nanoseconds eviction_interval = std::chrono::seconds(10);
  ScriptStyle script_style = ScriptStyle::fast;
  const Script* script = nullptr;  ///< null: check_script() of that style. Must outlive the store
  /// A cluster: so many hash tags for all keys, so that more share a call; 0: each first value is one.
  std::uint32_t cluster_groups = 0;
  /// The server is a proxy before several: a call has keys of one hash tag, and only EVALSHA and EVAL are sent.
  bool proxy = false;
  unsigned wait_replicas = 0;                  ///< that must have a charge before it is answered; 0: none
  std::chrono::milliseconds wait_timeout{10};  ///< after which it is answered all the same
  Access access{};  // NOLINT(readability-redundant-member-init): gcc warns of initializers without it
  /// What the stores of all io threads know of the servers; null: this one alone has it.
  std::shared_ptr<Nodes> nodes{};  // NOLINT(readability-redundant-member-init): gcc warns of initializers without it
};

/// What stores with these options share.
[[nodiscard]] std::shared_ptr<Nodes> make_nodes(const RedisOptions& options);

/// What is wrong with the numbers, or with them at such servers.
[[nodiscard]] std::optional<Error> check_numbers(const RedisOptions& options, const Target& target);

}  // namespace sluice::store::redis
