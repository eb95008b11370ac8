#include "store/redis/notices.h"

#include <utility>

namespace sluice::store::redis {

bool Notices::is_news(const std::string& topic, std::string_view words) {
  const std::scoped_lock lock(mutex_);
  std::string& said = said_[topic];
  return std::exchange(said, std::string(words)) != words;
}

void Notices::forget(const std::string& topic) {
  const std::scoped_lock lock(mutex_);
  said_.erase(topic);
}

}  // namespace sluice::store::redis
