// Answers the operations of a trace by the algorithms under test, one state for each (limit id, key).
#pragma once

#include <boost/json.hpp>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "algorithm/ticks.h"
#include "sluice/limit.h"
#include "tests/model/subject.h"
#include "tests/model/trace.h"

namespace sluice::model {

class Engine {
 public:
  explicit Engine(algorithm::Tick tick) : tick_(tick) {}

  /// The answer as the reference model writes it; empty for `limit`. Throws std::exception on a malformed operation.
  [[nodiscard]] boost::json::object apply(const Operation& operation);

 private:
  struct Held {
    Limit limit;
    std::unique_ptr<Subject> subject;
  };

  [[nodiscard]] Held& held(const std::string& limit, const std::string& key);
  [[nodiscard]] boost::json::object check(std::span<const TracedCharge> charges, std::int64_t now, bool take);
  [[nodiscard]] boost::json::object verb(const Operation& operation);

  algorithm::Tick tick_;
  std::map<std::string, Limit> limits_;
  std::map<std::pair<std::string, std::string>, Held> held_;
};

}  // namespace sluice::model
