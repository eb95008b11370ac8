// Traces of the reference model: one JSON object a line (reference/README.md has the format).
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/ticks.h"
#include "sluice/limit.h"

namespace sluice::model {

struct TracedCharge {
  std::string limit;
  std::string key;
  std::uint64_t cost = 0;
};

/// One line. Times are in ticks; which fields count depends on `verb`.
struct Operation {
  std::string verb;
  std::string limit;  ///< of all verbs but check and peek
  std::string key;
  std::vector<TracedCharge> charges;  ///< check, peek
  std::int64_t now = 0;
  std::uint64_t cost = 0;      ///< refund, penalize
  std::uint64_t reserved = 0;  ///< settle
  std::uint64_t actual = 0;
  std::optional<std::int64_t> at;  ///< refund, settle
  std::uint64_t lease = 0;         ///< release
  boost::json::object numbers;     ///< limit: all numbers; set_limit: those that change
  boost::json::object want;        ///< the model's answer
};

[[nodiscard]] Operation parse_operation(std::string_view line);

/// The opposite: the line of an operation, and the one that defines a limit.
[[nodiscard]] std::string operation_line(const Operation& operation);
[[nodiscard]] std::string limit_line(const std::string& id, const Limit& limit, algorithm::Tick tick);

/// Throws std::invalid_argument for a name that is none.
[[nodiscard]] Algorithm algorithm_named(std::string_view name);

/// `limit` with those of its numbers that `numbers` names.
[[nodiscard]] Limit with_numbers(Limit limit, const boost::json::object& numbers, algorithm::Tick tick);

}  // namespace sluice::model
