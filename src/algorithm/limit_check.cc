#include "algorithm/limit_check.h"

#include <cstdint>
#include <utility>

namespace sluice::algorithm {

namespace {

constexpr std::int64_t kMicrosecond = 1'000;
constexpr std::uint32_t kMaxSlots = 1'000;

std::string out_of_range(std::uint64_t low, std::uint64_t high, std::uint64_t found) {
  return "must be " + std::to_string(low) + " … " + std::to_string(high) + ", is " + std::to_string(found);
}

class Findings {
 public:
  void range(std::string_view field, std::uint64_t low, std::uint64_t high, std::uint64_t found) {
    if (found < low || found > high) add(field, out_of_range(low, high, found));
  }
  void duration(std::string_view field, std::chrono::nanoseconds found) {
    if (found.count() < kMicrosecond || found > kMaxPeriod || found.count() % kMicrosecond != 0) {
      add(field, "must be 1 µs … 366 days in whole µs, is " + std::to_string(found.count()) + " ns");
    }
  }
  void add(std::string_view field, std::string message) { found_.push_back({field, std::move(message)}); }
  std::vector<LimitProblem> take() { return std::move(found_); }

 private:
  std::vector<LimitProblem> found_;
};

void check_calendar(const Calendar& calendar, Findings& findings) {
  if (calendar.unit > Calendar::Unit::year) {
    findings.add("calendar.unit", "must be day, week, month or year");
  } else if (calendar.unit == Calendar::Unit::month && (calendar.anchor_day < 1 || calendar.anchor_day > 31)) {
    findings.add("calendar.anchor_day", "must be 1 … 31, is " + std::to_string(calendar.anchor_day));
  }
}

}  // namespace

std::vector<LimitProblem> validate(const Limit& limit) {
  Findings findings;
  if (limit.algorithm > Algorithm::concurrency) {
    findings.add("algorithm", "is not one of the algorithms");
    return findings.take();
  }
  const bool calendar = limit.algorithm == Algorithm::fixed_window && limit.align == Align::calendar;
  findings.range("rate", limit.algorithm == Algorithm::leaky_bucket ? 1 : 0, kMaxRate, limit.rate);
  if (!calendar && limit.algorithm != Algorithm::concurrency) findings.duration("period", limit.period);
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
      findings.range("burst", 1, kMaxTokens, limit.burst);
      break;
    case Algorithm::leaky_bucket:
      findings.range("queue", 0, kMaxTokens - 1, limit.queue);
      break;
    case Algorithm::sliding_window:
      if (limit.slots < 1 || limit.slots > kMaxSlots) {
        findings.range("slots", 1, kMaxSlots, limit.slots);
      } else if (limit.period.count() % (limit.slots * kMicrosecond) != 0) {
        findings.add("slots", "must split the period into whole µs: " + std::to_string(limit.slots) + " slots of " +
                                  std::to_string(limit.period.count()) + " ns do not");
      }
      break;
    case Algorithm::concurrency:
      findings.duration("ttl", limit.ttl);
      break;
    case Algorithm::fixed_window:
      if (limit.align > Align::calendar) findings.add("align", "must be epoch, first_hit or calendar");
      if (calendar) check_calendar(limit.calendar, findings);
      break;
    case Algorithm::sliding_log:
      break;
  }
  return findings.take();
}

std::string joined(const std::vector<LimitProblem>& problems) {
  std::string text;
  for (const LimitProblem& problem : problems) {
    if (!text.empty()) text += "; ";
    text.append(problem.field).append(": ").append(problem.message);
  }
  return text;
}

std::string validate_cost(std::uint64_t cost) { return cost <= kMaxTokens ? "" : out_of_range(0, kMaxTokens, cost); }

}  // namespace sluice::algorithm
