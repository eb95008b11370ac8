#include "queue/drain_lane.h"

#include <algorithm>

namespace sluice::queue {
namespace {

constexpr std::uint64_t kMostChunk = 5'000;
constexpr double kLeastStaged = 2;
constexpr double kMostStaged = 20'000;
constexpr std::size_t kStagedWithoutLimit = 1'000;
/// A timer for each message would cost more than the message. Less than the lateness that a schedule of a fast limit
/// makes up for at once.
constexpr std::int64_t kGrain = 500'000;
/// How much longer than its tokens a message is staged ahead: the tickets answer within this, as a rule.
constexpr int kStageHorizons = 4;

/// A message's request as the policy takes it.
class Asked {
 public:
  explicit Asked(const Message& message) {
    std::size_t count = 0;
    for (const MessageDescriptor& descriptor : message.descriptors) count += descriptor.entries.size();
    entries_.reserve(count);
    for (const MessageDescriptor& descriptor : message.descriptors) {
      const std::size_t first = entries_.size();
      for (const auto& [key, value] : descriptor.entries) entries_.push_back({.key = key, .value = value});
      Descriptor one;
      one.entries = std::span(entries_).subspan(first);
      one.cost = descriptor.cost;
      descriptors_.push_back(one);
    }
    request_.domain = message.domain;
    request_.descriptors = descriptors_;
    request_.cost = message.cost;
  }
  [[nodiscard]] const Request& request() const { return request_; }

 private:
  std::vector<Entry> entries_;
  std::vector<Descriptor> descriptors_;
  Request request_;
};

/// Tokens in `time`.
double tokens_in(const Limit& limit, std::chrono::nanoseconds time) {
  return static_cast<double>(limit.rate) / static_cast<double>(limit.period.count()) *
         static_cast<double>(time.count());
}

}  // namespace

bool DrainLane::can_reserve(const limiter::ChargeList& list) {
  const auto charges = list.charges();
  return charges.size() == 1 && charges[0].limit->numbers.algorithm == Algorithm::token_bucket &&
         charges[0].limit->numbers.rate > 0 && charges[0].enforcement != store::Enforcement::shadow;
}

std::string DrainLane::charges_of(const Message& message, const policy::Policy* policy, limiter::ChargeList& list) {
  list.clear();
  if (policy != nullptr) {
    const Asked asked(message);
    if (const policy::Domain* domain = policy->find_domain(asked.request().domain)) {
      list.collect(asked.request(), *policy, *domain);
    }
  }
  const bool reserves = can_reserve(list);
  std::string name = reserves ? "r" : "a";
  for (const store::Charge& charge : list.charges()) {
    name += std::to_string(charge.limit->id);
    name += ' ';
    name += charge.key;
    // What is asked is asked as a whole, so costs belong to it; what is reserved is counted in tokens.
    if (!reserves) {
      name += ' ';
      name += std::to_string(charge.cost);
    }
    name += '\n';
  }
  return name;
}

void DrainLane::set_limits(const limiter::ChargeList& list, std::shared_ptr<const policy::Policy> its_policy,
                           std::chrono::nanoseconds horizon) {
  charges.clear();
  keys.clear();
  for (const store::Charge& charge : list.charges()) {
    store::Charge& copy = charges.emplace_back(charge);
    copy.key = keys.emplace_back(charge.key);
  }
  policy = std::move(its_policy);
  decisions.resize(charges.size());
  schedule.reset();
  grain = 0;
  mode = Mode::free;
  most_staged = kStagedWithoutLimit;
  if (charges.empty()) return;
  mode = can_reserve(list) ? Mode::reserve : Mode::ask;
  double staged = kMostStaged;
  for (const store::Charge& charge : charges) {
    staged = std::min(staged, tokens_in(charge.limit->numbers, kStageHorizons * horizon));
  }
  most_staged = static_cast<std::size_t>(std::clamp(staged, kLeastStaged, kMostStaged));
  if (mode != Mode::reserve) return;
  schedule = std::make_unique<TokenSchedule>(numbers());
  if (schedule->length_of(1) < kGrain) grain = kGrain;
  chunk = static_cast<std::uint64_t>(std::clamp(tokens_in(numbers(), horizon), 1.0, static_cast<double>(kMostChunk)));
}

}  // namespace sluice::queue
