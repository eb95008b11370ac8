// Limits by policy, as the daemon has them, inside a program: in memory, or shared through Redis or Valkey.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sluice/decision.h"
#include "sluice/internal/export.h"

namespace sluice {

namespace limiter {
class Access;
}  // namespace limiter

/// Files for TLS to Redis, all PEM, read again when they have changed. A value; only for URLs that ask for TLS
/// (rediss://…).
struct RedisTls {
  // NOLINTBEGIN(readability-redundant-member-init): without it, gcc warns of designated initializers that leave it out
  std::string ca{};           ///< certificates of the authorities to trust; empty: those of the system
  std::string cert{};         ///< certificate that is shown to the server, with its chain; empty: none
  std::string key{};          ///< key of that certificate; both or neither
  std::string server_name{};  ///< what the server's certificate must name; empty: the host that is connected to
  // NOLINTEND(readability-redundant-member-init)
  bool verify = true;       ///< false: any certificate will do, so anybody may pose as the server
  bool verify_name = true;  ///< false: the certificate may name any host, if a trusted authority gave it
};

/// How the sentinels themselves are got into; without it they are asked without a password. A value; only where the URL
/// names sentinels.
struct RedisSentinel {
  /// Do sentinels speak TLS?
  enum class OverTls : std::uint8_t {
    same,  ///< as the data servers
    on,    ///< always
    off    ///< never
  };
  // NOLINTBEGIN(readability-redundant-member-init): as above
  std::string username{};       ///< empty: the default user; else there must be a password
  std::string password{};       ///< empty: none
  std::string password_file{};  ///< in the place of a password; as LimiterOptions::redis_password_file
  // NOLINTEND(readability-redundant-member-init)
  OverTls over_tls = OverTls::same;  ///< whether they speak TLS
  // NOLINTNEXTLINE(readability-redundant-member-init): as above
  RedisTls tls{};  ///< nothing set in it: that of the data servers
};

/// Which text of the script is sent; both decide the same.
enum class RedisScriptStyle : std::uint8_t {
  fast,    ///< the usual one
  literal  ///< for a hosted Redis that checks scripts by their text; at most 64 limits a request
};

/// How a Limiter is made. What is said of the daemon's settings of the same names (docs/configuration.md,
/// store.redis.…) holds here. A value.
struct LimiterOptions {
  // NOLINTBEGIN(readability-redundant-member-init): as above
  std::vector<std::string> policy_paths{};    ///< files and directories
  std::string policy_text{};                  ///< a policy file's text, in place of them
  std::uint64_t memory_max_keys = 1'000'000;  ///< most keys held in this process
  /// One server, the sentinels of a master, or nodes of a cluster; empty: the counters are in this process.
  ///   redis://[[user]:password@]host[:port][/database]       rediss:// over TLS
  ///   unix://[[user]:password@]/path[?db=N]                  its socket
  ///   redis-sentinel://host[:port],…/master[/database]       rediss-sentinel:// over TLS
  ///   redis+cluster://host[:port],…                          rediss+cluster:// over TLS
  std::string redis_url{};
  std::string redis_master{};         ///< name of a master: the addresses of a redis:// URL are sentinels
  std::string redis_username{};       ///< in the place of that in the URL; needs a password
  std::string redis_password{};       ///< in the place of that in the URL
  std::string redis_password_file{};  ///< file whose first line is the password, read again when it has changed
  RedisTls redis_tls{};               ///< to the data servers
  RedisSentinel redis_sentinel{};     ///< to the sentinels
  // NOLINTEND(readability-redundant-member-init)
  /// A cluster: so many hash tags for all keys, so that more share a call; 0: each first value is one. All that share
  /// the counters must have the same, at most 1 000 000.
  std::uint32_t redis_cluster_groups = 0;
  bool redis_proxy = false;          ///< the URL is that of a proxy before several servers (twemproxy, Envoy)
  unsigned redis_wait_replicas = 0;  ///< how many replicas must have a charge before it is answered; 0: none
  /// From 1 ms: how long that is waited for; then it is answered all the same.
  std::chrono::nanoseconds redis_wait_timeout = std::chrono::milliseconds(10);
  std::string redis_prefix = "sluice:";                                            ///< of every key in Redis
  std::chrono::nanoseconds redis_timeout = std::chrono::milliseconds(20);          ///< from 1 ms: of a decision
  unsigned redis_failures = 5;                                                     ///< from 1
  std::chrono::nanoseconds redis_probe_interval = std::chrono::milliseconds(500);  ///< from 1 ms
  std::chrono::nanoseconds redis_connection_max_age = std::chrono::hours(1);       ///< 0: no limit
  std::chrono::nanoseconds redis_denial_cache_max = std::chrono::seconds(1);       ///< 0: no denial is remembered
  RedisScriptStyle redis_script_style = RedisScriptStyle::fast;                    ///< which text of the script
};

/// What is asked: a domain of the policy and the descriptors of one request, which is charged all or nothing.
struct LimiterRequest {
  /// Key and value, in order.
  using Descriptor = std::vector<std::pair<std::string, std::string>>;
  std::string domain;                   ///< of the policy; not empty
  std::vector<Descriptor> descriptors;  ///< at least one; all are charged or none
  std::uint64_t cost = 1;               ///< 0 looks without taking; at most 10^15
  bool peek = false;                    ///< tell how a check would be answered, and take nothing
};

/// What can be done to the counters that a request matches, beside checking them; docs/semantics.md section 5.
struct LimiterVerb {
  /// Which of them.
  enum class Kind : std::uint8_t { refund, settle, penalize, reset };
  /// A time by the clock of the store (Redis: the server's).
  using TimePoint = std::chrono::system_clock::time_point;

  /// Gives the request's cost back, never beyond a fresh counter. `charged_at`: a time at which it had been charged;
  /// then nothing is given back where that charge no longer counts, as its window is over.
  [[nodiscard]] static LimiterVerb refund(std::optional<TimePoint> charged_at = std::nullopt) {
    return {.kind = Kind::refund, .charged_at = charged_at};
  }
  /// For a cost that is known only afterwards: charges the difference, into debt when needed, or gives it back. Both
  /// at most 10^15; the request's cost does not count.
  [[nodiscard]] static LimiterVerb settle(std::uint64_t reserved, std::uint64_t actual,
                                          std::optional<TimePoint> charged_at = std::nullopt) {
    return {.kind = Kind::settle, .reserved = reserved, .actual = actual, .charged_at = charged_at};
  }
  /// Takes the request's cost without asking, into debt as deep as the limit.
  [[nodiscard]] static LimiterVerb penalize() { return {.kind = Kind::penalize}; }
  /// The counters are as never seen.
  [[nodiscard]] static LimiterVerb reset() { return {.kind = Kind::reset}; }

  Kind kind = Kind::reset;                             ///< what is done
  std::uint64_t reserved = 0;                          ///< settle
  std::uint64_t actual = 0;                            ///< settle
  std::optional<TimePoint> charged_at = std::nullopt;  ///< refund, settle
};

/// What is told.
struct LimiterAnswer {
  /// Why there is no decision. `allowed` is then true but for what the caller makes of it; nothing was charged, or,
  /// with `deadline`, perhaps.
  enum class Problem : std::uint8_t {
    none,
    empty_domain,
    no_descriptors,
    cost_out_of_range,
    deadline,      ///< the caller's own has passed
    stopped,       ///< the limiter, or the wait, was ended
    store_failed,  ///< of a peek alone: what it would have been told is not known
    needs_lease    ///< it leads to a limit of concurrency, whose lease could not be released
  };
  Problem problem = Problem::none;  ///< why there is no decision; none: there is
  bool allowed = true;              ///< may the request go on?
  bool known_domain = true;         ///< false: no policy has it, so nothing is limited
  bool has_figures = true;  ///< false: the store failed and the policy's word stands (decision.source says which)
  Decision decision{};      ///< the request's, all descriptors taken together
  // NOLINTNEXTLINE(readability-redundant-member-init): as above
  std::string limit{};  ///< name of the limit that decided; empty: none
};

/// What came of a verb. No word of the policy (on_store_failure) stands in for a store that fails: it is told.
struct LimiterVerbAnswer {
  /// What came of one descriptor.
  struct Counter {
    bool found = false;        ///< there is a counter: the policy limits it, and not as unlimited
    bool done = false;         ///< false: the store failed, or there is no counter
    bool may_be_done = false;  ///< when the store failed: it may have been done all the same
    Decision decision{};       ///< done: what a check of cost 0 says then
    // NOLINTBEGIN(readability-redundant-member-init): as above
    std::string limit{};    ///< its name; empty: none
    std::string failure{};  ///< why the store failed
    // NOLINTEND(readability-redundant-member-init)
  };
  LimiterAnswer::Problem problem = LimiterAnswer::Problem::none;  ///< why nothing is told; of none, or all, or some
  bool known_domain = true;                                       ///< false: no policy has it
  bool done = false;                                              ///< all counters, and there is at least one
  // NOLINTNEXTLINE(readability-redundant-member-init): as above
  std::vector<Counter> descriptors{};  ///< one each, in order
};

/// Thread-safe. In memory a check costs what the daemon's does, about a microsecond, on the calling thread; with Redis
/// it is a round trip, shared with all checks that come at the same time, made by one thread of the limiter's own.
///
/// A Redis that fails never shows as an error: `on_store_failure` of the limits answers, within redis_timeout.
class SLUICE_API Limiter {
 public:
  /// What `start` calls with the answer.
  using Done = std::function<void(LimiterAnswer answer)>;
  /// The same of a verb.
  using VerbDone = std::function<void(LimiterVerbAnswer answer)>;
  /// An unfinished check. Copies are the same one.
  class Pending;

  /// Reads the policy. With Redis it starts to connect, and does not wait for that. Throws std::invalid_argument with
  /// all that is wrong with the policy or an option, a line each.
  explicit Limiter(const LimiterOptions& options);
  /// Checks that are pending are answered by Problem::stopped. No thread may be in check() or check_many().
  ~Limiter();
  Limiter(const Limiter&) = delete;
  Limiter& operator=(const Limiter&) = delete;

  /// Blocks until there is an answer, at most `patience` (default: without end, which the store's timeout makes short).
  /// When that is over, the check is withdrawn: if it was not sent yet, nothing is charged.
  [[nodiscard]] LimiterAnswer check(const LimiterRequest& request,
                                    std::optional<std::chrono::nanoseconds> patience = std::nullopt);
  /// Independent decisions, in order, for one round trip (a few for more than some hundred keys).
  [[nodiscard]] std::vector<LimiterAnswer> check_many(std::span<const LimiterRequest> requests);
  /// Calls `done` once: before it returns (memory), or on the limiter's own thread, where it must not block. It must
  /// not throw. For Boost.Asio see sluice/asio/async_check.h.
  Pending start(LimiterRequest request, Done done);

  /// Does it to each counter that the request matches, once. Blocks as check() does. Each counter is changed in one
  /// atomic step of its own; with Redis it is a round trip, and never sent twice.
  LimiterVerbAnswer apply(const LimiterRequest& request, const LimiterVerb& verb,
                          std::optional<std::chrono::nanoseconds> patience = std::nullopt);
  /// Calls `done` as the other start() does.
  Pending start(LimiterRequest request, const LimiterVerb& verb, VerbDone done);

  /// Reads the policy's files again; state is kept. What is wrong, a line each: then the old policy stays in force.
  [[nodiscard]] std::string reload();
  /// False until Redis could first answer.
  [[nodiscard]] bool ready() const;

 private:
  friend class limiter::Access;
  class SLUICE_HIDDEN Impl;
  std::shared_ptr<Impl> impl_;
};

/// An unfinished check or verb, to be cancelled. Copies are the same one.
class SLUICE_API Limiter::Pending {
 public:
  Pending() = default;
  /// Withdraws it if it has no answer yet: then `done` is called with Problem::stopped, and a charge that was not sent
  /// is not made. Thread-safe; does not wait. The limiter may be gone.
  void cancel() const;

 private:
  friend class Limiter;
  struct SLUICE_HIDDEN Ask;
  std::weak_ptr<Impl> impl_;
  std::weak_ptr<Ask> ask_;
};

}  // namespace sluice
