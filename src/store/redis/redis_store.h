// Counters in a Redis or Valkey server, shared by all that use it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "metrics/metrics.h"
#include "store/redis/client.h"
#include "store/redis/node.h"
#include "store/redis/redis_limit.h"
#include "store/redis/script.h"
#include "store/redis/session.h"
#include "store/redis/url.h"
#include "store/store.h"

namespace sluice::store::redis {

struct RedisOptions {
  std::string url = "redis://127.0.0.1:6379";                        ///< see parse_url
  std::string prefix = "sluice:";                                    ///< of all keys; without braces
  std::chrono::nanoseconds timeout = std::chrono::milliseconds(20);  ///< from 1 ms: of a check, the network included
  unsigned failures = 5;  ///< in a row, until the server is not asked any more (1 …)
  std::chrono::nanoseconds probe_interval = std::chrono::milliseconds(500);  ///< ± 20 %: then it is tried again
  std::chrono::nanoseconds connection_max_age{};  ///< ± 20 %: then the connection is made anew; 0: no limit
  /// Between looks at what the server has evicted, by one of the threads; 0: none.
  std::chrono::nanoseconds eviction_interval = std::chrono::seconds(10);
  ScriptStyle script_style = ScriptStyle::fast;
  const Script* script = nullptr;  ///< null: check_script() of that style. Must outlive the store
  /// What the stores of all io threads know of the server; null: this one alone has it.
  std::shared_ptr<Node> node{};  // NOLINT(readability-redundant-member-init): gcc warns of initializers without it
};

/// What stores with these options share. Logs each change of the server's state, once.
[[nodiscard]] std::shared_ptr<Node> make_node(const RedisOptions& options);

/// One per io thread: everything happens on the thread that runs `io`, and completions run from its event loop. A check
/// is one round trip on the thread's one pipelined connection, one atomic step for all its charges, on the server's
/// clock; it is answered within the timeout in any case. Checks of one turn of the loop, and those that come while
/// others are on their way, share calls of the script (see Client). What fails is told in Check::failure, and a charge
/// that may have been applied is never sent twice. Connects by itself, from the start.
class RedisStore final : public Store, private Client::Owner {
 public:
  /// Fails when the URL or another option is wrong. `metrics` must outlive the store.
  [[nodiscard]] static Result<std::unique_ptr<RedisStore>> create(boost::asio::io_context& io,
                                                                  const RedisOptions& options, metrics::Shard& metrics);
  /// Checks that are pending are never completed.
  ~RedisStore() override;

  [[nodiscard]] Progress check(Check& check, Time now) override;
  /// One is a call of its own.
  [[nodiscard]] Progress apply(Check& check, Time now) override;
  /// Cost: proportional to the calls in flight.
  void cancel(Check& check) override;
  /// Connected, logged in, and not given up after failures.
  [[nodiscard]] bool ready() const override { return client_.is_up(); }

 private:
  RedisStore(boost::asio::io_context& io, const RedisOptions& options, Endpoint endpoint, metrics::Shard& metrics);

  void done(Check& check, Failure failure) override;
  void bad_key(Failure failure, std::string_view words) override;
  void call_sent() override;
  void keys_evicted(std::uint64_t keys) override;

  [[nodiscard]] Progress submit(Check& check, Time now);
  [[nodiscard]] std::shared_ptr<const RedisLimit> find_limit(const CountedLimit& limit);
  void count(Failure failure);
  const Endpoint endpoint_;
  metrics::Shard& metrics_;
  std::vector<std::shared_ptr<const RedisLimit>> limits_;   ///< by CountedLimit::id
  std::vector<std::shared_ptr<const RedisLimit>> scratch_;  ///< of the check at hand
  std::int64_t key_failure_logged_ = 0;                     ///< steady ns; 0: never
  const std::shared_ptr<Node> node_;
  const ScriptStyle style_;
  Client client_;
  std::shared_ptr<Session> session_;
};

}  // namespace sluice::store::redis
