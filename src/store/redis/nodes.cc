#include "store/redis/nodes.h"

#include <utility>

#include "base/log.h"
#include "store/redis/jitter.h"

namespace sluice::store::redis {

std::shared_ptr<Node> Nodes::at(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(nodes_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Node>& held = nodes_[name];
  if (auto node = held.lock()) return node;
  const auto tell = [name](bool up, Failure reason, std::string_view detail) {
    if (up) {
      log::info("redis: connected, limits are shared", {{"server", name}});
    } else if (detail.empty()) {
      log::warn("redis: not available", {{"server", name}, {"reason", to_text(reason)}});
    } else {
      log::warn("redis: not available", {{"server", name}, {"reason", to_text(reason)}, {"detail", detail}});
    }
  };
  Node::Options options = options_;
  options.seed = random_seed();
  auto node = std::make_shared<Node>(options, tell);
  held = node;
  return node;
}

void Nodes::tell_map(bool is_found, std::string_view why) {
  const std::scoped_lock lock(mutex_);
  if (told_ == is_found) return;
  const bool is_first = !told_.has_value();
  told_ = is_found;
  if (!is_found) {
    log::warn("redis: no node of the cluster tells who serves which keys", {{"detail", why}});
  } else if (!is_first) {
    log::info("redis: the cluster's nodes tell again who serves which keys");
  }
}

}  // namespace sluice::store::redis
