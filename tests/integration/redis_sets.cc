#include "tests/integration/redis_sets.h"

#include <functional>
#include <stdexcept>
#include <thread>

#include "store/redis/key_slot.h"

namespace sluice::testing {

using namespace std::chrono_literals;
using store::redis::text_of;

bool wait_for(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

namespace {

void require(bool met, const char* what) {
  if (!met) throw std::runtime_error(what);
}

// The value of a field in a flat list of names and values.
std::string field_of(const redisReply& reply, std::string_view name) {
  for (std::size_t i = 0; i + 1 < reply.elements; i += 2) {
    if (text_of(*reply.element[i]) == name) return std::string(text_of(*reply.element[i + 1]));
  }
  return {};
}

std::vector<std::string> data_options(const SetOptions& options) {
  std::vector<std::string> all = options.options;
  for (const char* word : {"--repl-diskless-sync-delay", "0"}) all.emplace_back(word);
  if (options.setup.over_tls) all.insert(all.end(), {"--tls-replication", "yes"});
  if (!options.setup.password.empty()) all.insert(all.end(), {"--masterauth", options.setup.password});
  return all;
}

std::unique_ptr<RedisServer> data_server(const SetOptions& options, const std::vector<std::string>& words,
                                         std::size_t index) {
  ServerSetup setup = options.setup;
  if (index < options.clocks_ahead.size()) setup.clock_ahead = options.clocks_ahead[index];
  return std::make_unique<RedisServer>(words, options.config, setup);
}

}  // namespace

SentinelSet::SentinelSet(const SetOptions& options)
    : scheme_(options.setup.over_tls ? "rediss-sentinel://" : "redis-sentinel://") {
  std::vector<std::string> all = data_options(options);
  servers_.push_back(data_server(options, all, 0));
  all.emplace_back("--replicaof");
  all.push_back("127.0.0.1 " + std::to_string(servers_[0]->port()));
  servers_.push_back(data_server(options, all, 1));
  // A sentinel learns of replicas at once, or only when it asks again after ten seconds.
  require(wait_for([&] { return servers_[0]->info("replication", "connected_slaves") == "1"; }), "no replica");
  for (int i = 0; i < 3; ++i) {
    const std::string monitor = std::string("sentinel monitor ") + kMaster + " 127.0.0.1 " +
                                std::to_string(servers_[0]->port()) + " 2\n" +
                                "sentinel down-after-milliseconds mymaster 1000\n"
                                "sentinel failover-timeout mymaster 5000\n";
    const std::string& password = options.setup.password;
    const std::string login =
        password.empty() ? "" : std::string("sentinel auth-pass ") + kMaster + " " + password + "\n";
    std::vector<std::string> words = options.options;
    words.emplace_back("--sentinel");
    if (options.setup.over_tls) words.insert(words.end(), {"--tls-replication", "yes"});
    sentinels_.push_back(
        std::make_unique<RedisServer>(words, monitor + login + options.sentinel_config, options.setup));
  }
  require(wait_for([&] {
            for (const auto& sentinel : sentinels_) {
              const auto reply = sentinel->command({"SENTINEL", "master", kMaster});
              if (field_of(*reply, "num-slaves") != "1" || field_of(*reply, "num-other-sentinels") != "2") return false;
            }
            return true;
          }),
          "the sentinels do not agree");
}

std::string SentinelSet::url() const {
  std::string url = scheme_;
  for (const auto& sentinel : sentinels_) {
    if (sentinel != sentinels_.front()) url += ',';
    url += "127.0.0.1:" + std::to_string(sentinel->port());
  }
  return url + "/" + kMaster;
}

std::uint16_t SentinelSet::master_port(std::size_t sentinel) {
  const auto reply = sentinels_[sentinel]->command({"SENTINEL", "get-master-addr-by-name", kMaster});
  require(reply->elements == 2, "the sentinels know no master");
  return static_cast<std::uint16_t>(std::stoi(std::string(text_of(*reply->element[1]))));
}

RedisServer& SentinelSet::master() { return *servers_[master_port() == servers_[0]->port() ? 0 : 1]; }
RedisServer& SentinelSet::replica() { return *servers_[master_port() == servers_[0]->port() ? 1 : 0]; }

void SentinelSet::fail_over() {
  const RedisServer& old_master = master();
  const auto reply = sentinels_[0]->command({"SENTINEL", "FAILOVER", kMaster});
  require(reply->type != REDIS_REPLY_ERROR, "no failover");
  await_switch_from(old_master);
}

void SentinelSet::await_switch_from(const RedisServer& old_master) {
  require(wait_for([&] { return master_port() != old_master.port(); }), "no switch");
}

void SentinelSet::await_agreement_against(const RedisServer& old_master) {
  require(wait_for([&] {
            for (std::size_t i = 0; i < sentinels_.size(); ++i) {
              if (master_port(i) == old_master.port()) return false;
            }
            return true;
          }),
          "the sentinels do not agree on the new master");
}

void SentinelSet::be_patient() {
  for (const auto& sentinel : sentinels_) {
    sentinel->command({"SENTINEL", "SET", kMaster, "down-after-milliseconds", "60000"});
  }
}

ClusterSet::ClusterSet(const SetOptions& options) : set_options_(options) {
  std::vector<std::string> all = data_options(options);
  for (const char* word :
       {"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no"}) {
    all.emplace_back(word);
  }
  // A replica is not told of before its master has sent it something: after 10 s, unless this says sooner.
  all.insert(all.end(), {"--repl-ping-replica-period", "1"});
  if (options.setup.over_tls) all.insert(all.end(), {"--tls-cluster", "yes"});
  for (std::size_t i = 0; i < 2 * kMasters; ++i) servers_.push_back(data_server(options, all, i));
  constexpr std::size_t slots = store::redis::kSlots;
  for (std::size_t i = 0; i < kMasters; ++i) {
    servers_[i]->command({"CLUSTER", "ADDSLOTSRANGE", std::to_string(i * slots / kMasters),
                          std::to_string((i + 1) * slots / kMasters - 1)});
  }
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    servers_[i]->command({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    // All at once, as hearsay takes longer.
    for (std::size_t k = 0; k < i; ++k) {
      servers_[k]->command({"CLUSTER", "MEET", "127.0.0.1", std::to_string(servers_[i]->port())});
    }
  }
  require(wait_for([&] {
            for (const auto& server : servers_) {
              const auto reply = server->command({"CLUSTER", "INFO"});
              if (text_of(*reply).find("cluster_known_nodes:6") == std::string_view::npos) return false;
            }
            return true;
          }),
          "the nodes of the cluster do not meet");
  for (std::size_t i = kMasters; i < servers_.size(); ++i) {
    const std::string master = id(i - kMasters);
    require(wait_for([&] { return servers_[i]->command({"CLUSTER", "REPLICATE", master})->type != REDIS_REPLY_ERROR; }),
            "no replica");
  }
  require(wait_for([&] { return is_whole(); }), "the cluster is not whole");
}

bool ClusterSet::is_whole() {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const auto reply = servers_[i]->command({"CLUSTER", "INFO"});
    if (text_of(*reply).find("cluster_state:ok") == std::string_view::npos) return false;
    const bool is_linked = i < kMasters ? servers_[i]->info("replication", "connected_slaves") == "1"
                                        : servers_[i]->info("replication", "master_link_status") == "up";
    if (!is_linked) return false;
    const auto slots = servers_[i]->command({"CLUSTER", "SLOTS"});
    if (slots->elements != kMasters) return false;
    for (std::size_t k = 0; k < slots->elements; ++k) {
      if (slots->element[k]->elements != 4) return false;
    }
  }
  return true;
}

std::string ClusterSet::url() const {
  return std::string(set_options_.setup.over_tls ? "rediss" : "redis") +
         "+cluster://127.0.0.1:" + std::to_string(servers_[kMasters]->port()) +
         ",127.0.0.1:" + std::to_string(servers_[0]->port());
}

const std::string& ClusterSet::id(std::size_t index) {
  ids_.resize(servers_.size());
  if (ids_[index].empty()) ids_[index] = text_of(*servers_[index]->command({"CLUSTER", "MYID"}));
  return ids_[index];
}

bool ClusterSet::is_master(std::size_t index) {
  return servers_[index]->is_running() && servers_[index]->info("replication", "role") == "master";
}

std::size_t ClusterSet::owner_of(const std::string& key) {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    // Any answer but MOVED comes from the owner.
    if (is_master(i) && servers_[i]->command({"EXISTS", key})->type == REDIS_REPLY_INTEGER) return i;
  }
  throw std::runtime_error("nobody serves the key");
}

void ClusterSet::begin_move(std::uint16_t slot, std::size_t from, std::size_t to) {
  servers_[to]->command({"CLUSTER", "SETSLOT", std::to_string(slot), "IMPORTING", id(from)});
  servers_[from]->command({"CLUSTER", "SETSLOT", std::to_string(slot), "MIGRATING", id(to)});
}

void ClusterSet::end_move(std::uint16_t slot, std::size_t from, std::size_t to) {
  for (;;) {
    const auto keys = servers_[from]->command({"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), "100"});
    if (keys->elements == 0) break;
    for (std::size_t i = 0; i < keys->elements; ++i) {
      migrate(std::string(text_of(*keys->element[i])), from, to);
    }
  }
  const std::string owner = id(to);
  servers_[to]->command({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", owner});
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (i != to && is_master(i)) servers_[i]->command({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", owner});
  }
}

void ClusterSet::migrate(const std::string& key, std::size_t from, std::size_t to) {
  std::vector<std::string> words{"MIGRATE", "127.0.0.1", std::to_string(servers_[to]->port()), key, "0", "2000"};
  const std::string& password = set_options_.setup.password;
  if (!password.empty()) words.insert(words.end(), {"AUTH", password});
  servers_[from]->command(words);
}

void ClusterSet::move_slot(std::uint16_t slot, std::size_t from, std::size_t to) {
  begin_move(slot, from, to);
  end_move(slot, from, to);
}

}  // namespace sluice::testing
