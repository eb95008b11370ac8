// Answers the operations of a trace, one state for each (limit id, key); charges of one request are all or nothing.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/ticks.h"
#include "algorithm/verdict.h"
#include "sluice/limit.h"
#include "tests/model/subject.h"
#include "tests/model/trace.h"

namespace sluice::model {

/// All fields of an answer. `own` tells which of the algorithm's own fields it has.
struct Answer {
  bool allowed = true;
  std::int64_t retry_after = 0;
  std::uint64_t limit = 0;
  std::uint64_t remaining = 0;
  std::int64_t reset_after = 0;
  std::optional<Algorithm> own;        ///< set for a single charge
  Mark mark = Mark::none;              ///< fixed window
  std::optional<std::int64_t> delay;   ///< leaky bucket; and of several charges, when one is of such
  std::optional<std::uint64_t> lease;  ///< concurrency
  std::optional<bool> released;        ///< release
  std::optional<std::size_t> which;    ///< set for several charges, like the two below
  bool has_delay = false;
  std::vector<std::optional<std::uint64_t>> leases;
  friend bool operator==(const Answer&, const Answer&) = default;
};

/// As the reference model writes it.
[[nodiscard]] boost::json::object to_json(const Answer& answer);

class Engine {
 public:
  Engine(algorithm::Tick tick, SubjectMaker make) : tick_(tick), make_(make) {}

  void define(const std::string& id, const Limit& limit) { limits_[id] = limit; }
  /// Throws std::exception on a malformed operation.
  [[nodiscard]] Answer apply(const Operation& operation);
  /// The present numbers of a limit on a key.
  [[nodiscard]] const Limit& limit_of(const std::string& limit, const std::string& key) {
    return held(limit, key).limit;
  }
  /// Forgets all limits and keys.
  void clear() {
    limits_.clear();
    held_.clear();
  }

 private:
  struct Held {
    Limit limit;
    std::unique_ptr<Subject> subject;
  };

  [[nodiscard]] Held& held(const std::string& limit, const std::string& key);
  [[nodiscard]] Answer check(std::span<const TracedCharge> charges, std::int64_t now, bool take);
  [[nodiscard]] Answer verb(const Operation& operation);

  algorithm::Tick tick_;
  SubjectMaker make_;
  std::map<std::string, Limit> limits_;
  std::map<std::pair<std::string, std::string>, Held> held_;
};

}  // namespace sluice::model
