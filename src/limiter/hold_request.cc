#include "limiter/hold_request.h"

#include <utility>

namespace sluice::limiter {

HoldRequest::HoldRequest(Hold hold) : hold_(std::move(hold)) {
  for (const Hold::Descriptor& kept : hold_.descriptors) {
    std::vector<Entry>& entries = entries_.emplace_back();
    for (const auto& [key, value] : kept.entries) entries.push_back({.key = key, .value = value});
    leases_.push_back(kept.lease);
    marks_.push_back(kept.mark);
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Descriptor& descriptor = descriptors_.emplace_back();
    descriptor.entries = entries_[i];
    if (hold_.kind == Hold::Kind::lease) descriptor.cost = hold_.descriptors[i].cost;
  }
  request_.domain = hold_.domain;
  request_.descriptors = descriptors_;
}

CounterVerb HoldRequest::release() const {
  return {.kind = CounterVerb::Kind::release, .leases = leases_, .marks = marks_};
}

CounterVerb HoldRequest::commit(std::uint64_t actual) const {
  // The memory store reads the clock again, and clocks are known to some ns only: a charge that opened its window must
  // not seem to be older than that.
  constexpr std::int64_t readings_apart = 10'000;
  return {.kind = CounterVerb::Kind::settle,
          .reserved = hold_.cost,
          .actual = actual,
          .at = hold_.charged_at + readings_apart,
          .reservation =
              CounterVerb::Reservation{
                  .lease = hold_.lease, .life = hold_.life, .expires_at = hold_.expires_at, .place = hold_.place},
          .marks = marks_};
}

}  // namespace sluice::limiter
