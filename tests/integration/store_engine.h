// Answers the operations of a trace by a store, at the trace's own times.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/ticks.h"
#include "store/charge.h"
#include "store/store.h"
#include "store/verb.h"
#include "tests/model/trace.h"

namespace sluice::testing {

class StoreEngine {
 public:
  /// `tick`: of the trace's times.
  explicit StoreEngine(algorithm::Tick tick) : tick_(tick) {}
  virtual ~StoreEngine() = default;
  StoreEngine(const StoreEngine&) = delete;
  StoreEngine& operator=(const StoreEngine&) = delete;

  /// The answer as the reference model writes it; empty for `limit`. Throws std::exception on a malformed operation
  /// and on an answer that is a failure.
  [[nodiscard]] boost::json::object apply(const model::Operation& operation);

 protected:
  /// Answers a check, or a verb, at `now`, in ticks. Throws when the answer is a failure.
  virtual void ask(store::Check& check, std::int64_t now) = 0;
  /// A limit is defined: others of the trace are over.
  virtual void begin() {}

 private:
  struct Held {
    store::CountedLimit counted;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> leases;  ///< id and cost; the model calls the first 1
  };
  using Name = std::pair<std::string, std::string>;

  [[nodiscard]] Held& held(const std::string& limit, const std::string& key);
  [[nodiscard]] boost::json::object check(const std::vector<model::TracedCharge>& traced, std::int64_t now,
                                          const store::Verb* verb);
  [[nodiscard]] boost::json::object verb(const model::Operation& operation);
  [[nodiscard]] boost::json::value ticks(const Wait& wait) const;
  [[nodiscard]] boost::json::object figures(const Decision& decision) const;

  const algorithm::Tick tick_;
  std::map<std::string, Limit> limits_;
  std::map<Name, Held> held_;
};

}  // namespace sluice::testing
