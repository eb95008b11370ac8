// Servers of the frameworks that there are adapters for, each with a limit in front of a handler that counts.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/integration/adapter/article_shop.h"

namespace sluice::testing {

/// Answers 200 "done" to whatever is let in, until its end.
class LimitedServer {
 public:
  virtual ~LimitedServer() = default;
  LimitedServer(const LimitedServer&) = delete;
  LimitedServer& operator=(const LimitedServer&) = delete;
  /// "127.0.0.1:8080"
  [[nodiscard]] virtual std::string address() const = 0;
  /// How many requests have come to the handler.
  [[nodiscard]] int handled() const { return handled_; }

 protected:
  LimitedServer() = default;
  std::atomic<int> handled_{0};
};

/// Keys by the policy's `requests:`, or by the program.
enum class KeysBy { mapping, program };

struct Framework {
  std::string_view name;
  std::unique_ptr<LimitedServer> (*start)(ArticleShop& shop, KeysBy keys);
};

/// Those that were found when the tests were configured.
[[nodiscard]] const std::vector<Framework>& http_frameworks();

[[nodiscard]] std::unique_ptr<LimitedServer> start_httplib(ArticleShop& shop, KeysBy keys);
[[nodiscard]] std::unique_ptr<LimitedServer> start_beast(ArticleShop& shop, KeysBy keys);

}  // namespace sluice::testing
