// Counters in Redis or Valkey – one server, a master behind Sentinel, a cluster, a proxy – shared by all that use it.
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
#include "store/redis/link.h"
#include "store/redis/login.h"
#include "store/redis/nodes.h"
#include "store/redis/redis_limit.h"
#include "store/redis/redis_options.h"
#include "store/redis/script.h"
#include "store/redis/sentinel.h"
#include "store/redis/session.h"
#include "store/redis/slots.h"
#include "store/redis/split_check.h"
#include "store/redis/target.h"
#include "store/redis/tls.h"
#include "store/store.h"

namespace sluice::store::redis {

/// What is wrong with the options, TLS and password files included; nothing when a store can be made.
[[nodiscard]] std::optional<Error> check_options(const RedisOptions& options);

/// One per io thread: everything happens on the thread that runs `io`, and completions run from its event loop. A check
/// is one round trip on the thread's one pipelined connection to a server, one atomic step for all its charges, on the
/// server's clock; where keys are spread over servers, one for all whose keys lie together (see SplitCheck). It is
/// answered within the timeout in any case. Checks of one turn of the loop, and those that come while others are on
/// their way, share calls of the script (see Client). What fails is told in Check::failure, and a charge that may have
/// been applied is never sent twice. Connects by itself, from the start. Nothing is sent to replicas.
class RedisStore final : public Store,
                         private Client::Owner,
                         private SentinelClient::Owner,
                         private SlotsClient::Owner,
                         private SplitCheck::Owner,
                         private Link::Finder {
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
  /// Some server is connected, logged in, and not given up after failures.
  [[nodiscard]] bool ready() const override;

 private:
  /// A server, and the thread's connections to it: one, or as many as may wait for replicas.
  struct Server {
    Address address;
    std::vector<std::shared_ptr<Link>> links;
  };
  class GiveBack;

  RedisStore(boost::asio::io_context& io, const RedisOptions& options, Resolved resolved, std::shared_ptr<Nodes> nodes,
             std::unique_ptr<Tls> tls, std::unique_ptr<Tls> sentinel_tls, metrics::Shard& metrics);

  // Of clients.
  void done(Check& check, Failure failure, std::int64_t at) override;
  void bad_key(Failure failure, std::string_view words) override;
  void call_sent(std::size_t requests) override;
  void redirected(Client& client, Call& call, const Redirect* redirect) override;
  void link_changed(Client& client, bool is_up) override;
  void replicas_missed() override;
  void keys_evicted(std::uint64_t keys) override;
  // Of guides.
  void master_is(const Address& address) override;
  void map_loaded(SlotMap map) override;
  void no_map(std::string_view why) override;
  void find(Locator::Found found) override;
  void forget() override;
  // Of requests in steps.
  [[nodiscard]] Failure submit_part(SplitCheck& split, SplitCheck::Part& part) override;
  void give_back(const SplitCheck& split, const SplitCheck::Part& part, std::size_t charge,
                 const std::optional<Verb>& verb) override;
  void split_done(SplitCheck& split) override;

  [[nodiscard]] Progress submit(Check& check, Time now);
  [[nodiscard]] Progress submit_split(Check& check, Time now, std::int64_t steady_now);
  [[nodiscard]] Failure submit_to(Link* link, Check& check, Limits limits, Time now, std::uint64_t group,
                                  std::int64_t steady_now, std::int64_t deadline);
  [[nodiscard]] bool find_groups(const Check& check);
  void group_by_place(const Check& check);
  void cut_groups();
  /// Of a group of a cluster's keys.
  [[nodiscard]] static std::size_t slot_of(std::uint64_t group) {
    return static_cast<std::size_t>((group - 1) % kSlots);
  }
  [[nodiscard]] Link* pick(std::uint64_t group) const;
  [[nodiscard]] Server& server_at(const Address& address);
  void start_server(Server& server, Link::Finder* finder, const std::string& name);
  void adopt(Link& link, Call& call, bool asking, std::int64_t not_before);
  [[nodiscard]] Address address_of(const Client& client) const;
  void ask_for_map();
  void note_trouble();
  [[nodiscard]] std::shared_ptr<const RedisLimit> find_limit(const CountedLimit& limit);
  void count(Failure failure);
  [[nodiscard]] Failure unserved();

  boost::asio::io_context& io_;
  const RedisOptions options_;
  const Topology topology_;
  const std::string master_;  ///< sentinels' name of it
  const std::string name_;
  metrics::Shard& metrics_;
  const std::shared_ptr<Nodes> nodes_;
  const Script& script_;
  const std::unique_ptr<Tls> tls_;
  const std::unique_ptr<Tls> sentinel_tls_;
  Login login_;
  Login guide_login_;
  Client::Options client_options_;

  std::vector<std::shared_ptr<const RedisLimit>> limits_;   ///< by CountedLimit::id
  std::vector<std::shared_ptr<const RedisLimit>> scratch_;  ///< of the check at hand
  std::vector<std::uint64_t> groups_;                       ///< of its charges
  std::string key_scratch_;

  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<Server*> route_;  ///< a cluster: by slot; null: nobody serves it, as far as is known

  std::unique_ptr<SentinelClient> sentinels_;
  std::unique_ptr<SlotsClient> slots_;
  std::shared_ptr<Session> guide_session_;

  std::vector<std::unique_ptr<SplitCheck>> splits_;  ///< all of them
  std::vector<SplitCheck*> free_splits_;
  const SplitCheck* starting_ = nullptr;  ///< within submit_split()
  std::vector<std::unique_ptr<GiveBack>> give_backs_;
  std::vector<GiveBack*> free_give_backs_;
};

}  // namespace sluice::store::redis
