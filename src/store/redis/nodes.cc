#include "store/redis/nodes.h"

#include <utility>

#include "base/log.h"
#include "store/redis/jitter.h"

namespace sluice::store::redis {

namespace {

constexpr std::int64_t kKeyInterval = 10'000'000'000;  // ns, between lines on keys that cannot be used

void warn(std::string_view message, std::string_view server, Failure reason, std::string_view detail) {
  if (detail.empty()) {
    log::warn(message, {{"server", server}, {"reason", to_text(reason)}});
  } else {
    log::warn(message, {{"server", server}, {"reason", to_text(reason)}, {"detail", detail}});
  }
}

// `server`: empty, where none is known.
ServerHealth::Tell health_log(const std::string& server) {
  return [server](const ServerHealth::News& news) {
    const std::string_view name = server.empty() ? std::string_view("none") : std::string_view(server);
    const std::string count = std::to_string(news.failed);
    switch (news.change) {
      case ServerHealth::Change::failing:
        warn("store: failing, limits answer by on_store_failure", name, news.reason, news.words);
        break;
      case ServerHealth::Change::answering:
        log::info("store: answers again", {{"server", name}, {"answered_by_on_store_failure", count}});
        break;
      case ServerHealth::Change::left:
        log::info("store: others serve its keys now", {{"server", name}, {"answered_by_on_store_failure", count}});
        break;
    }
  };
}

}  // namespace

Nodes::Nodes(const Node::Options& options) : options_(options), unserved_(health_log({})) {}

std::shared_ptr<Node> Nodes::at(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(nodes_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Node>& held = nodes_[name];
  if (auto node = held.lock()) return node;
  const auto tell = [name](bool up, Failure reason, std::string_view detail) {
    if (up) {
      log::info("redis: connected, limits are shared", {{"server", name}});
    } else {
      warn("redis: not available", name, reason, detail);
    }
  };
  Node::Options options = options_;
  options.seed = random_seed();
  auto node = std::make_shared<Node>(options, tell, health_log(name));
  held = node;
  return node;
}

std::vector<Nodes::Server> Nodes::servers() {
  const std::scoped_lock lock(mutex_);
  std::vector<Server> all;
  for (const auto& [name, held] : nodes_) {
    const auto node = held.lock();
    if (node == nullptr) continue;
    all.push_back({.name = name, .is_open = node->is_open(), .is_failing = node->health().is_failing()});
  }
  return all;
}

void Nodes::tell_map(bool is_found, std::string_view why) {
  const std::scoped_lock lock(mutex_);
  if (told_ == is_found) return;
  const bool is_first = !told_.has_value();
  told_ = is_found;
  no_map_ = why;
  if (!is_found) {
    log::warn("redis: no node of the cluster tells who serves which keys", {{"detail", why}});
  } else if (!is_first) {
    log::info("redis: the cluster's nodes tell again who serves which keys");
  }
}

void Nodes::unserved_check(std::int64_t now) {
  std::string why;
  if (!unserved_.is_failing()) {
    const std::scoped_lock lock(mutex_);
    why = no_map_;
  }
  unserved_.failed(1, Failure::slot_unserved, why, now);
}

std::string Nodes::trouble() {
  std::string lines;
  const auto add = [&lines](const std::string& what, const std::string& why) {
    if (!why.empty()) lines += what + ": " + why + '\n';
  };
  std::vector<std::pair<std::string, std::shared_ptr<Node>>> all;
  std::string no_map;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [name, held] : nodes_) {
      if (auto node = held.lock()) all.emplace_back(name, std::move(node));
    }
    no_map = no_map_;
  }
  for (const auto& [name, node] : all) add(name, node->trouble());
  add("the cluster", no_map);
  add("keys of no server", unserved_.trouble());
  return lines;
}

bool Nodes::may_tell_of_key(std::int64_t now) {
  std::int64_t last = key_told_at_.load(std::memory_order_relaxed);
  return (last == 0 || now - last >= kKeyInterval) &&
         key_told_at_.compare_exchange_strong(last, now, std::memory_order_relaxed);
}

void Nodes::tell_unserved(std::size_t slots) {
  if (slots == 0) unserved_.mended();
  const std::scoped_lock lock(mutex_);
  if (told_unserved_ == slots) return;
  told_unserved_ = slots;
  if (slots > 0) {
    log::warn("redis: slots of the cluster have no master", {{"slots", std::to_string(slots)}});
  } else {
    log::info("redis: all slots of the cluster have a master again");
  }
}

void Nodes::tell_master(const std::string& name, const std::string& server) {
  const std::scoped_lock lock(mutex_);
  if (master_ == server) return;
  const std::string before = std::exchange(master_, server);
  if (before.empty()) {
    log::info("redis: found the master", {{"master", name}, {"server", server}});
  } else {
    log::info("redis: the master has changed", {{"master", name}, {"server", server}, {"before", before}});
  }
}

}  // namespace sluice::store::redis
