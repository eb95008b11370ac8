// What is under test: one limit on one key, whatever algorithm it has.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <memory>
#include <optional>

#include "algorithm/ticks.h"
#include "algorithm/verdict.h"
#include "sluice/limit.h"

namespace sluice::model {

class Subject {
 public:
  Subject() = default;
  Subject(const Subject&) = default;
  Subject& operator=(const Subject&) = default;
  virtual ~Subject() = default;

  [[nodiscard]] virtual algorithm::Verdict judge(std::int64_t now, std::uint64_t cost) const = 0;
  virtual void take(std::int64_t now, std::uint64_t cost) = 0;
  virtual void count_denied(std::int64_t now, std::uint64_t cost) = 0;
  [[nodiscard]] virtual algorithm::View view(std::int64_t now) const = 0;
  virtual void refund(std::int64_t now, std::uint64_t cost, std::optional<std::int64_t> at) = 0;
  virtual void settle(std::int64_t now, std::uint64_t reserved, std::uint64_t actual,
                      std::optional<std::int64_t> at) = 0;
  virtual void penalize(std::int64_t now, std::uint64_t cost) = 0;
  /// Was the lease held?
  [[nodiscard]] virtual bool release(std::int64_t now, std::uint64_t lease) = 0;
  virtual void set_limit(const Limit& limit, std::int64_t now) = 0;
  virtual void reset() = 0;
  /// A view of the same state after it was dropped if it may be, which must not show.
  [[nodiscard]] virtual algorithm::View view_if_dropped(std::int64_t now) const = 0;
  /// Adds the fields that only this algorithm has. To be called before the cost is taken.
  virtual void add_own_fields(boost::json::object& answer, const algorithm::Verdict& verdict,
                              std::uint64_t cost) const = 0;
  [[nodiscard]] virtual std::unique_ptr<Subject> clone() const = 0;
};

[[nodiscard]] std::unique_ptr<Subject> make_subject(const Limit& limit, algorithm::Tick tick);

}  // namespace sluice::model
