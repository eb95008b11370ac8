// The Redis that settings name, whatever its topology, for commands that a person waits for.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/redis_connection.h"
#include "store/redis/redirect.h"
#include "store/redis/redis_store.h"

namespace sluice::cli {

/// One server, the master that sentinels name, or all masters of a cluster, over TLS and as a user where the options
/// say so. Nothing is sent to a replica. Each step takes options.timeout at most. Not thread-safe.
class RedisServers {
 public:
  /// Connects; to a cluster's masters when they are first needed. Fails for a proxy, as that hides who holds a key.
  [[nodiscard]] static Result<std::unique_ptr<RedisServers>> open(const store::redis::RedisOptions& options);

  /// The reply to one command about `key`, by the server that holds it; redirections are followed, and the server's
  /// errors are errors.
  [[nodiscard]] Result<store::redis::Reply> ask(std::string_view key, const std::vector<std::string>& words) {
    return ask_raw(key, command_bytes(words));
  }
  /// The same of a command in the protocol's form.
  [[nodiscard]] Result<store::redis::Reply> ask_raw(std::string_view key, std::string_view command);

  /// Told of keys found or removed so far.
  using Progress = std::function<void(std::size_t keys)>;
  /// The names of all keys of a pattern, in order, each once; an error when there are more than `most`.
  [[nodiscard]] Result<std::vector<std::string>> find(const std::string& pattern, std::size_t most,
                                                      const Progress& progress);
  /// Removes keys, many at a time. `removed`: how many were there, in case of an error up to then.
  [[nodiscard]] std::optional<Error> remove(std::span<const std::string> names, std::uint64_t& removed,
                                            const Progress& progress);

  /// As the settings name it, without a password.
  [[nodiscard]] std::string name() const { return resolved_.target.to_text(); }
  /// Of a cluster: how many hash tags all keys lie under.
  [[nodiscard]] std::uint32_t groups() const { return groups_; }

 private:
  explicit RedisServers(store::redis::Resolved resolved) : resolved_(std::move(resolved)) {}

  [[nodiscard]] std::optional<Error> find_master();
  [[nodiscard]] std::optional<Error> load_map();
  [[nodiscard]] Result<RedisConnection*> at(const store::redis::Address& address);
  [[nodiscard]] Result<store::redis::Address> owner_of(std::string_view key);
  [[nodiscard]] bool is_cluster() const { return resolved_.target.topology == store::redis::Topology::cluster; }
  [[nodiscard]] Result<RedisConnection::Options> access(const store::redis::CredentialOptions& credentials,
                                                        store::redis::Tls* tls, int database) const;
  [[nodiscard]] std::optional<Error> remove_at(const store::redis::Address& address,
                                               std::span<const std::string* const> names, std::uint64_t& removed);

  store::redis::Resolved resolved_;
  std::chrono::milliseconds patience_{};
  std::uint32_t groups_ = 0;
  std::unique_ptr<store::redis::Tls> tls_;
  std::unique_ptr<store::redis::Tls> sentinel_tls_;
  store::redis::SlotMap map_;                                            ///< of a cluster
  store::redis::Address master_;                                         ///< of all others
  std::map<std::string, std::unique_ptr<RedisConnection>> connections_;  ///< by address
};

}  // namespace sluice::cli
