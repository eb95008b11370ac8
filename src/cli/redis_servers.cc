#include "cli/redis_servers.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "store/redis/credentials.h"
#include "store/redis/key_slot.h"
#include "store/redis/sentinel.h"
#include "store/redis/slots.h"
#include "store/redis/target.h"

namespace sluice::cli {
namespace {

using store::redis::Address;
using store::redis::Redirect;
using store::redis::Reply;
using store::redis::SlotMap;
using store::redis::text_of;
using store::redis::Topology;

constexpr int kMostHops = 20;
constexpr std::chrono::milliseconds kPause{100};  // before a call that cannot be answered now is tried again
constexpr std::size_t kBatch = 500;

bool is_error(const Reply& reply) { return reply->type == REDIS_REPLY_ERROR; }

}  // namespace

Result<std::unique_ptr<RedisServers>> RedisServers::open(const store::redis::RedisOptions& options) {
  auto resolved = store::redis::resolve_target(options.url, options.access);
  if (!resolved) return resolved.error();
  if (options.proxy) {
    return Error{
        "store.redis.proxy is set: a proxy hides which server holds a key; name the servers themselves, one "
        "after the other, with --store.redis.url and --store.redis.proxy=false"};
  }
  std::unique_ptr<RedisServers> servers(new RedisServers(*std::move(resolved)));
  const store::redis::Resolved& to = servers->resolved_;
  servers->patience_ = std::chrono::ceil<std::chrono::milliseconds>(options.timeout);
  if (to.target.tls) {
    auto made = store::redis::Tls::create(options.access.tls);
    if (!made) return made.error();
    servers->tls_ = *std::move(made);
  }
  if (to.sentinel_over_tls) {
    auto made = store::redis::Tls::create(to.sentinel_tls);
    if (!made) return made.error();
    servers->sentinel_tls_ = *std::move(made);
  }
  std::optional<Error> error;
  switch (to.target.topology) {
    case Topology::standalone: {
      servers->master_ = to.target.nodes.front();
      const auto connection = servers->at(servers->master_);
      if (!connection) error = connection.error();
      break;
    }
    case Topology::sentinel:
      error = servers->find_master();
      break;
    case Topology::cluster:
      servers->groups_ = options.cluster_groups;
      error = servers->load_map();
      break;
  }
  if (error) return *std::move(error);
  return servers;
}

Result<RedisConnection::Options> RedisServers::access(const store::redis::CredentialOptions& credentials,
                                                      store::redis::Tls* tls, int database) const {
  store::redis::Credentials read(credentials);
  if (auto error = read.refresh()) return *std::move(error);
  return RedisConnection::Options{
      .user = read.user(), .password = read.password(), .database = database, .tls = tls, .patience = patience_};
}

Result<RedisConnection*> RedisServers::at(const Address& address) {
  std::unique_ptr<RedisConnection>& held = connections_[address.to_text()];
  if (held == nullptr) {
    auto options = access(resolved_.credentials, tls_.get(), resolved_.target.database);
    if (!options) return options.error();
    options->wants_alone = resolved_.target.topology == Topology::standalone;
    auto made = RedisConnection::open(address, *options);
    if (!made) return made.error();
    held = *std::move(made);
  }
  return held.get();
}

// From any sentinel that can be asked and whose answer is still true.
std::optional<Error> RedisServers::find_master() {
  const auto options = access(resolved_.sentinel_credentials, sentinel_tls_.get(), 0);
  if (!options) return options.error();
  Error last{"no sentinel"};
  const auto try_sentinel = [&](const Address& sentinel) -> std::optional<Error> {
    const auto connection = RedisConnection::open(sentinel, *options);
    if (!connection) return connection.error();
    const auto answer = (*connection)->ask({"SENTINEL", "get-master-addr-by-name", resolved_.target.master});
    if (!answer) return answer.error();
    if (is_error(*answer)) {
      return Error{"Redis " + sentinel.to_text() + ": " + store::redis::explain_sentinel_error(text_of(**answer))};
    }
    const redisReply& told = **answer;
    const Error unknown{"the sentinel " + sentinel.to_text() + " does not know the master " + resolved_.target.master};
    if (told.type != REDIS_REPLY_ARRAY || told.elements != 2) return unknown;
    const std::string_view port = text_of(*told.element[1]);
    master_ = {.host = std::string(text_of(*told.element[0]))};
    if (std::from_chars(port.data(), port.data() + port.size(), master_.port).ec != std::errc()) return unknown;
    const auto master = at(master_);
    if (!master) return master.error();
    const auto role = (*master)->ask({"ROLE"});
    if (!role) return role.error();
    if (is_error(*role)) return server_error(**master, **role);
    const bool is_master = (*role)->elements > 0 && text_of(*(*role)->element[0]) == "master";
    return is_master ? std::nullopt : std::optional(Error{"Redis " + master_.to_text() + ": it is no master any more"});
  };
  for (const Address& sentinel : resolved_.target.nodes) {
    auto error = try_sentinel(sentinel);
    if (!error) return std::nullopt;
    last = *std::move(error);
  }
  return last;
}

std::optional<Error> RedisServers::load_map() {
  std::vector<Address> nodes = map_.masters;
  nodes.insert(nodes.end(), resolved_.target.nodes.begin(), resolved_.target.nodes.end());
  Error last{"no node"};
  for (const Address& node : nodes) {
    const auto connection = at(node);
    if (!connection) {
      last = connection.error();
      continue;
    }
    const auto answer = (*connection)->ask({"CLUSTER", "SLOTS"});
    if (!answer || is_error(*answer)) {
      last = answer ? Error{"Redis " + node.to_text() + ": " + store::redis::explain_map_error(text_of(**answer))}
                    : answer.error();
      connections_.erase(node.to_text());
      continue;
    }
    if (auto map = SlotMap::parse(**answer, node); map && !map->masters.empty()) {
      map_ = *std::move(map);
      return std::nullopt;
    }
    last = Error{"Redis " + node.to_text() + ": does not tell who serves which keys of the cluster"};
  }
  return last;
}

Result<Address> RedisServers::owner_of(std::string_view key) {
  if (!is_cluster()) return master_;
  const std::uint16_t slot = store::redis::key_slot(key);
  const std::uint16_t owner = map_.owner[slot];
  if (owner == SlotMap::kNobody) return Error{"no node of the cluster serves slot " + std::to_string(slot)};
  return map_.masters[owner];
}

Result<Reply> RedisServers::ask_raw(std::string_view key, std::string_view command) {
  std::optional<Redirect> redirect;
  for (int hop = 0; hop < kMostHops; ++hop) {
    const bool asking = redirect && redirect->kind == Redirect::Kind::ask;
    const auto address = redirect && redirect->kind != Redirect::Kind::try_again ? redirect->to : owner_of(key);
    if (!address) return address.error();
    const auto connection = at(*address);
    if (!connection) return connection.error();
    auto replies =
        (*connection)->ask_raw((asking ? command_bytes({"ASKING"}) : "") + std::string(command), asking ? 2 : 1);
    if (!replies) return replies.error();
    Reply& reply = replies->back();
    if (!is_error(reply)) return std::move(reply);
    redirect = is_cluster() ? store::redis::parse_redirect(text_of(*reply)) : std::nullopt;
    if (!redirect) return server_error(**connection, *reply);
    if (redirect->kind != Redirect::Kind::try_again && redirect->to.host.empty()) redirect->to.host = address->host;
    if (redirect->kind == Redirect::Kind::try_again) std::this_thread::sleep_for(kPause);
    if (redirect->kind != Redirect::Kind::ask) {
      if (auto error = load_map()) return *std::move(error);
    }
  }
  return Error{"the cluster does not settle who serves the key; try again later"};
}

Result<std::vector<std::string>> RedisServers::find(const std::string& pattern, std::size_t most,
                                                    const Progress& progress) {
  std::set<std::string> names;  // SCAN may tell one twice
  const std::vector<Address> servers = is_cluster() ? map_.masters : std::vector{master_};
  for (const Address& server : servers) {
    const auto connection = at(server);
    if (!connection) return connection.error();
    std::string cursor = "0";
    do {
      const auto answer = (*connection)->ask({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"});
      if (!answer) return answer.error();
      if (is_error(*answer)) return server_error(**connection, **answer);
      if ((*answer)->elements != 2) return Error{"Redis " + (*connection)->server() + ": no answer to SCAN"};
      cursor = text_of(*(*answer)->element[0]);
      const redisReply& found = *(*answer)->element[1];
      for (std::size_t i = 0; i < found.elements; ++i) names.emplace(text_of(*found.element[i]));
      if (names.size() > most) {
        return Error{"more than " + std::to_string(most) + (most == 1 ? " key matches" : " keys match") +
                     "; narrow the pattern, or raise --most"};
      }
      progress(names.size());
    } while (cursor != "0");
  }
  return std::vector<std::string>(names.begin(), names.end());
}

std::optional<Error> RedisServers::remove(std::span<const std::string> names, std::uint64_t& removed,
                                          const Progress& progress) {
  std::size_t done = 0;
  while (done < names.size()) {
    const auto batch = names.subspan(done, std::min(kBatch, names.size() - done));
    std::map<std::string, std::pair<Address, std::vector<const std::string*>>> by_server;
    for (const std::string& name : batch) {
      const auto address = owner_of(name);
      if (!address) return address.error();
      auto& [server, of_server] = by_server[address->to_text()];
      server = *address;
      of_server.push_back(&name);
    }
    for (const auto& [text, part] : by_server) {
      if (auto error = remove_at(part.first, part.second, removed)) return error;
    }
    done += batch.size();
    progress(done);
  }
  return std::nullopt;
}

std::optional<Error> RedisServers::remove_at(const Address& address, std::span<const std::string* const> names,
                                             std::uint64_t& removed) {
  const auto connection = at(address);
  if (!connection) return connection.error();
  std::string commands;
  for (const std::string* name : names) commands += command_bytes({"DEL", *name});
  const auto replies = (*connection)->ask_raw(commands, names.size());
  if (!replies) return replies.error();
  std::optional<Error> first;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const redisReply& reply = *(*replies)[i];
    if (reply.type == REDIS_REPLY_INTEGER) {
      removed += static_cast<std::uint64_t>(reply.integer);
    } else if (is_cluster() && store::redis::parse_redirect(text_of(reply))) {
      const auto again = ask(*names[i], {"DEL", *names[i]});
      if (again) removed += static_cast<std::uint64_t>((*again)->integer);
      if (!again && !first) first = again.error();
    } else if (!first) {
      first = server_error(**connection, reply);
    }
  }
  return first;
}

}  // namespace sluice::cli
