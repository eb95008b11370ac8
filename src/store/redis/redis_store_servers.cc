// Which servers a store has, and where its calls go: as sentinels say, the map of a cluster, and redirections.
#include <algorithm>
#include <string>
#include <utility>

#include "store/redis/detour.h"
#include "store/redis/key_slot.h"
#include "store/redis/redis_store.h"

namespace sluice::store::redis {

void RedisStore::adopt(Link& link, Call& call, bool asking, std::int64_t not_before) {
  link.client().adopt(call, asking, not_before, Session::now());
  link.wake_up();
}

void RedisStore::redirected(Client& client, Call& call, const Redirect* redirect) {
  if (topology_ != Topology::cluster) {
    client.fail(call, Failure::wrong_server);
    return;
  }
  const std::size_t slot = slot_of(call.group);
  Detour detour;
  if (redirect != nullptr) {
    metrics_.add(metrics::Counter::store_redirects);
    // What waits for another node's connection is not refused any more.
    call.refusal = redirect->kind == Redirect::Kind::try_again ? refusal_of(*redirect) : Failure::none;
    detour = plan_detour(*redirect, ++call.hops, address_of(client));
  }
  if (detour.wants_map) ask_for_map();
  Server* const server = detour.to ? &server_at(*detour.to) : route_[slot];
  if (detour.has_moved) route_[slot] = server;
  if (detour.failure == Failure::none && server == nullptr) detour.failure = unserved();
  if (detour.failure != Failure::none) {
    client.give_up(call, detour.failure);
    return;
  }
  const std::int64_t now = Session::now();
  adopt(*server->links.front(), call, detour.is_asking, detour.delay == 0 ? 0 : now + detour.delay);
}

// Of one of the clients here.
Address RedisStore::address_of(const Client& client) const {
  for (const auto& server : servers_) {
    for (const auto& link : server->links) {
      if (&link->client() == &client) return server->address;
    }
  }
  return {};
}

void RedisStore::link_changed(Client& /*client*/, bool is_up) {
  if (topology_ == Topology::sentinel && is_up) {
    // One that says itself that it is the master.
    for (const auto& link : servers_.front()->links) {
      if (link->client().is_connected() && link->address()) nodes_->tell_master(master_, link->address()->to_text());
    }
  }
  if (topology_ != Topology::cluster) return;
  if (!is_up) ask_for_map();
  note_trouble();
}

void RedisStore::find(Locator::Found found) {
  sentinels_->find_master(std::move(found));
  guide_session_->wake_up();
}

void RedisStore::forget() { sentinels_->forget_questions(); }

void RedisStore::master_is(const Address& address) {
  for (const auto& link : servers_.front()->links) {
    if (!link->address() || *link->address() == address) continue;
    link->client().switch_over(Session::now());
    link->wake_up();
  }
}

RedisStore::Server& RedisStore::server_at(const Address& address) {
  const auto found = std::ranges::find(servers_, address, [](const auto& server) { return server->address; });
  if (found != servers_.end()) return **found;
  servers_.push_back(std::make_unique<Server>());
  servers_.back()->address = address;
  start_server(*servers_.back(), nullptr, address.to_text());
  return *servers_.back();
}

void RedisStore::map_loaded(SlotMap map) {
  nodes_->tell_map(true, {});
  std::vector<Server*> masters;
  for (const Address& address : map.masters) masters.push_back(&server_at(address));
  std::vector<bool> has_probe_key(masters.size(), false);
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    const std::uint16_t owner = map.owner[slot];
    route_[slot] = owner == SlotMap::kNobody ? nullptr : masters[owner];
  }
  nodes_->tell_unserved(static_cast<std::size_t>(std::ranges::count(route_, nullptr)));
  // A key for probes that lies at the server: tags are tried until each has one.
  std::size_t missing = masters.size();
  for (unsigned number = 0; missing > 0; ++number) {
    const std::string tag = std::to_string(number);
    const std::uint16_t owner = map.owner[key_slot(tag)];
    if (owner == SlotMap::kNobody || has_probe_key[owner]) continue;
    has_probe_key[owner] = true;
    --missing;
    for (const auto& link : masters[owner]->links) link->client().set_probe_key(tag);
  }
  for (std::size_t i = 0; i < servers_.size();) {
    Server& server = *servers_[i];
    if (std::ranges::find(masters, &server) != masters.end()) {
      ++i;
      continue;
    }
    bool is_idle = true;
    for (const auto& link : server.links) {
      link->client().hand_over(Session::now());
      is_idle = is_idle && link->client().is_idle();
    }
    if (!is_idle) {
      ++i;
      continue;
    }
    for (const auto& link : server.links) {
      link->node().leave();
      link->stop();
    }
    servers_.erase(servers_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  note_trouble();
}

void RedisStore::no_map(std::string_view why) { nodes_->tell_map(false, why); }

void RedisStore::ask_for_map() {
  slots_->refresh(Session::now());
  guide_session_->wake_up();
}

void RedisStore::note_trouble() {
  const bool is_whole = std::ranges::all_of(route_, [](const Server* server) { return server != nullptr; });
  const bool is_up = std::ranges::all_of(servers_, [](const auto& server) {
    return std::ranges::all_of(server->links, [](const auto& link) { return link->client().is_connected(); });
  });
  slots_->set_trouble(!is_whole || !is_up);
}

}  // namespace sluice::store::redis
