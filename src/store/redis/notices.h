// What is logged once a process, whichever of its threads see the cause.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace sluice::store::redis {

/// Thread-safe.
class Notices {
 public:
  /// Is this another thing than what was said last of the topic? From now on it is what was said.
  [[nodiscard]] bool is_news(const std::string& topic, std::string_view words);
  /// There is nothing to say of it any more.
  void forget(const std::string& topic);

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> said_;  ///< last, by topic
};

}  // namespace sluice::store::redis
