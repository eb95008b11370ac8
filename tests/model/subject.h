// What is compared: one limit on one key, whatever algorithm it has, by the code under test or by the slow model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "algorithm/ticks.h"
#include "algorithm/verdict.h"
#include "sluice/limit.h"

namespace sluice::model {

class Subject {
 public:
  virtual ~Subject() = default;

  [[nodiscard]] virtual algorithm::Verdict judge(std::int64_t now, std::uint64_t cost) const = 0;
  virtual void take(std::int64_t now, std::uint64_t cost) = 0;
  /// Fixed windows only.
  virtual void count_denied(std::int64_t /*now*/, std::uint64_t /*cost*/) {}
  [[nodiscard]] virtual algorithm::View view(std::int64_t now) const = 0;
  virtual void refund(std::int64_t now, std::uint64_t cost, std::optional<std::int64_t> at) = 0;
  virtual void settle(std::int64_t now, std::uint64_t reserved, std::uint64_t actual,
                      std::optional<std::int64_t> at) = 0;
  virtual void penalize(std::int64_t now, std::uint64_t cost) = 0;
  /// Concurrency only: was the lease held?
  [[nodiscard]] virtual bool release(std::int64_t /*now*/, std::uint64_t /*lease*/) { return false; }
  /// Concurrency only: the id that the next lease gets.
  [[nodiscard]] virtual std::uint64_t next_lease() const { return 0; }
  virtual void set_limit(const Limit& limit, std::int64_t now) = 0;
  virtual void reset() = 0;
  [[nodiscard]] virtual std::unique_ptr<Subject> clone() const = 0;

 protected:
  Subject() = default;
  Subject(const Subject&) = default;
  Subject& operator=(const Subject&) = default;
};

using SubjectMaker = std::unique_ptr<Subject> (*)(const Limit&, algorithm::Tick);

/// The algorithms of src/algorithm.
[[nodiscard]] std::unique_ptr<Subject> make_subject(const Limit& limit, algorithm::Tick tick);

}  // namespace sluice::model
