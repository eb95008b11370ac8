// The servers that tickets lie in: one, the one that sentinels name, or those of a cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "queue/ticket_link.h"
#include "store/redis/credentials.h"
#include "store/redis/redirect.h"
#include "store/redis/script.h"
#include "store/redis/target.h"
#include "store/redis/tls.h"

namespace sluice::queue {

/// Links are opened when they are needed, logged in, with the script loaded. Not thread-safe; blocks, for some
/// time-outs at most.
class TicketServers {
 public:
  /// `files`: of the data servers. `script` must outlive it. Fails when a file for TLS cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<TicketServers>> create(store::redis::Resolved resolved,
                                                                     const store::redis::TlsFiles& files,
                                                                     const store::redis::Script& script,
                                                                     std::chrono::milliseconds timeout);

  [[nodiscard]] bool is_cluster() const { return target_.topology == store::redis::Topology::cluster; }
  /// To where keys of this slot lie, as far as is known; the slot counts in a cluster only. Null: it cannot be reached.
  [[nodiscard]] TicketLink* link_to(std::uint16_t slot);
  /// To where a node of a cluster has sent a command. Null: it cannot be reached.
  [[nodiscard]] TicketLink* follow(const store::redis::Redirect& redirect);
  /// Ends a link, which is made anew when it is needed.
  void drop(TicketLink& link, const std::string& why);

 private:
  TicketServers(store::redis::Resolved resolved, const store::redis::Script& script, std::chrono::milliseconds timeout);
  [[nodiscard]] TicketLink* open_at(const store::redis::Address& address);
  [[nodiscard]] std::unique_ptr<TicketLink> connect(const store::redis::Address& address, store::redis::Tls* tls,
                                                    store::redis::Credentials& credentials);
  [[nodiscard]] std::optional<store::redis::Address> ask_sentinels();
  [[nodiscard]] bool greet(TicketLink& link, const std::vector<std::string>& words);
  void note(const std::string& why);

  const store::redis::Target target_;
  const store::redis::Script& script_;
  const std::chrono::milliseconds timeout_;
  const bool sentinel_over_tls_;
  std::unique_ptr<store::redis::Tls> tls_;           ///< null: in the clear
  std::unique_ptr<store::redis::Tls> sentinel_tls_;  ///< the same
  store::redis::Credentials credentials_;
  store::redis::Credentials sentinel_credentials_;
  std::map<std::string, std::unique_ptr<TicketLink>> links_;  ///< by address; the one that is not of a cluster: by ""
  std::map<std::uint16_t, store::redis::Address> places_;     ///< of slots of a cluster
  std::size_t next_seed_ = 0;
  std::chrono::steady_clock::time_point retry_at_;
  bool down_ = false;
};

}  // namespace sluice::queue
