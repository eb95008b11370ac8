#include "store/limit_ids.h"

#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

namespace sluice::store {
namespace {

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

struct Ids {
  std::mutex mutex;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> by_identity;
};

Ids& ids() {
  static Ids all;
  return all;
}

}  // namespace

std::uint32_t limit_id(std::string_view identity) {
  Ids& all = ids();
  const std::scoped_lock lock(all.mutex);
  if (const auto found = all.by_identity.find(identity); found != all.by_identity.end()) return found->second;
  const auto id = static_cast<std::uint32_t>(all.by_identity.size() + 1);
  all.by_identity.emplace(identity, id);
  return id;
}

std::uint32_t limit_id_count() {
  Ids& all = ids();
  const std::scoped_lock lock(all.mutex);
  return static_cast<std::uint32_t>(all.by_identity.size());
}

}  // namespace sluice::store
