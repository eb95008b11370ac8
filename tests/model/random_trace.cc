#include "tests/model/random_trace.h"

#include <algorithm>
#include <array>
#include <set>

namespace sluice::model {

namespace {

constexpr double kOlder = 0.06;  // how often the clock steps back
constexpr std::int64_t kLastDay = 45'000;
constexpr auto kTop = static_cast<std::int64_t>(kMaxTokens);

std::uint64_t most_of(const Limit& limit) {
  if (limit.algorithm == Algorithm::token_bucket) return limit.burst;
  return limit.algorithm == Algorithm::leaky_bucket ? limit.queue + 1 : limit.rate;
}

}  // namespace

RandomTrace::RandomTrace(std::uint64_t seed, std::optional<Algorithm> algorithm, algorithm::Tick tick, bool monotone)
    : random_(seed), algorithm_(algorithm), tick_(tick), second_(ticks_per_second(tick)), monotone_(monotone) {}

std::int64_t RandomTrace::between(std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, std::max(low, high))(random_);
}
std::int64_t RandomTrace::below(std::int64_t end) { return between(0, end - 1); }
bool RandomTrace::chance(double probability) {
  return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
}
template <typename T, typename... Rest>
T RandomTrace::one_of(T first, Rest... rest) {
  const std::array<T, sizeof...(rest) + 1> all{first, static_cast<T>(rest)...};
  return all[static_cast<std::size_t>(below(static_cast<std::int64_t>(all.size())))];
}
std::uint64_t RandomTrace::up_to_power(int most_digits) {
  std::int64_t power = 1;
  for (std::int64_t digits = between(1, most_digits); digits > 0; --digits) power *= 10;
  return static_cast<std::uint64_t>(between(1, power));
}

Limit RandomTrace::random_limit(Algorithm algorithm) {
  struct Numbers {
    std::uint64_t rate;
    std::int64_t period;
    std::uint64_t size;
  };
  const std::int64_t s = second_;
  const std::int64_t us = s / 1'000'000;
  const std::int64_t day = 86'400 * s;
  const auto in_ns = [&](std::int64_t ticks) { return std::chrono::nanoseconds(ticks * nanoseconds_in(tick_)); };
  const auto numbers =
      one_of(Numbers{10, s, 30}, Numbers{3, s, 1}, Numbers{3, s, 4}, Numbers{7, 60 * s, 7}, Numbers{1'000'003, s, 5},
             Numbers{1'000'003, s, 4'000}, Numbers{1'000'000'000, s, 6'000}, Numbers{600'000'000, s, 10},
             Numbers{1, 30 * day, 1}, Numbers{7, 30 * day, 3}, Numbers{5, day, 5}, Numbers{1, 366 * day, kMaxTokens},
             Numbers{kMaxRate, us, kMaxTokens}, Numbers{0, s, 5}, Numbers{100, s, 200}, Numbers{999, 7 * us, 12},
             Numbers{30, 60 * s, 16}, Numbers{1, 10'000 * s, 1}, Numbers{2'000, s, 2'000},
             Numbers{up_to_power(12), us * static_cast<std::int64_t>(up_to_power(12)), up_to_power(15)});
  const auto small = one_of<std::uint64_t>(1, 2, 5, 10, 37, 100, 1'000);
  const auto window = one_of<std::int64_t>(s / 2, s, 10 * s, 60 * s, 3'600 * s, 30 * day, 366 * day, 7 * us,
                                           us * between(1, 1'000'000'000));
  const auto any_rate = [&] {
    return one_of<std::uint64_t>(small, small, 0, kMaxRate, static_cast<std::uint64_t>(between(1, 1'000'000'000)));
  };
  Limit limit{.algorithm = algorithm};
  switch (algorithm) {
    case Algorithm::token_bucket:
    case Algorithm::leaky_bucket:
      limit.rate = algorithm == Algorithm::leaky_bucket ? std::max<std::uint64_t>(1, numbers.rate) : numbers.rate;
      limit.period = in_ns(numbers.period);
      limit.burst = numbers.size;
      limit.queue = numbers.size - 1;
      break;
    case Algorithm::fixed_window:
      limit.rate = any_rate();
      limit.count_denied = chance(0.15);
      limit.align = chance(0.3) ? Align::calendar : one_of(Align::epoch, Align::first_hit);
      if (limit.align == Align::calendar) {
        limit.calendar = {
            one_of(Calendar::Unit::day, Calendar::Unit::week, Calendar::Unit::month, Calendar::Unit::year),
            one_of("UTC", "Europe/Berlin", "America/New_York"), one_of(1, 1, 15, 29, 31)};
      } else {
        limit.period = in_ns(window);
      }
      break;
    case Algorithm::sliding_log:
      limit.rate = one_of<std::uint64_t>(small, small, small, 0, kMaxRate);
      limit.period = in_ns(window);
      break;
    case Algorithm::sliding_window:
      limit.rate = any_rate();
      limit.slots = one_of<std::uint32_t>(1, 1, 2, 4, 10, 60);
      limit.period = in_ns(std::max<std::int64_t>(1, window / (limit.slots * us)) * limit.slots * us);
      break;
    case Algorithm::concurrency:
      limit.rate = one_of<std::uint64_t>(0, 1, 2, 5, 10, 50);
      limit.ttl = in_ns(one_of(us, s, 60 * s, 61 * s + us));
      break;
  }
  return limit;
}

boost::json::object RandomTrace::changed(const Limit& limit) {
  boost::json::object to;
  const auto rate = limit.rate;
  if (chance(0.6)) {
    to["rate"] =
        std::clamp<std::uint64_t>(one_of<std::uint64_t>(rate * 2, rate / 2, rate + 1, 7, 1'000'003), 1, kMaxRate);
  }
  if (limit.algorithm == Algorithm::token_bucket || limit.algorithm == Algorithm::leaky_bucket) {
    const bool bucket = limit.algorithm == Algorithm::token_bucket;
    const std::uint64_t size = bucket ? limit.burst : limit.queue;
    if (chance(0.6)) {
      to[bucket ? "burst" : "queue"] =
          std::clamp<std::uint64_t>(one_of<std::uint64_t>(size * 3, size / 2, size + 1, 5), 1, kMaxTokens - 1);
    }
  }
  const std::int64_t period = limit.period.count() / nanoseconds_in(tick_);
  const bool windows = limit.align != Align::calendar && limit.algorithm != Algorithm::concurrency;
  if (windows && chance(0.15) && period <= 100 * 86'400 * second_) to["period"] = period * 2;
  if (limit.algorithm == Algorithm::concurrency && chance(0.3)) to["ttl"] = one_of(second_ / 1'000'000, 7 * second_);
  return to;
}

std::vector<std::pair<std::string, Limit>> RandomTrace::start_segment() {
  ++segment_;
  limits_.clear();
  todo_.clear();
  charged_.clear();
  leases_.clear();
  last_ = {};
  last_.remaining = 1;
  last_.limit = 1;
  last_took_alone_ = false;
  const std::int64_t count = algorithm_ ? 1 : between(2, 4);
  std::vector<std::pair<std::string, Limit>> defined;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto algorithm = algorithm_ ? *algorithm_ : static_cast<Algorithm>(below(6));
    const Limit limit = random_limit(algorithm);
    const std::string id = "L" + std::to_string(segment_) + "." + std::to_string(i);
    limits_.push_back({id, limit, limit});
    defined.emplace_back(id, limit);
  }
  const std::int64_t s = second_;
  const std::int64_t day = 86'400 * s;
  now_ = one_of(5 * s + below(s), 1'767'225'600 * s, between(1'700'000'000, 1'900'000'000) * s + below(s),
                1'774'746'000 * s - below(3 * day), 1'792'890'000 * s - below(3 * day));
  return defined;
}

std::int64_t RandomTrace::step(std::int64_t gap, std::int64_t period) {
  const double when = std::uniform_real_distribution<double>(0, 1)(random_);
  const std::int64_t reset = last_.reset_after == algorithm::kNever ? 1 : std::max<std::int64_t>(1, last_.reset_after);
  if (when < 0.35) return 0;
  if (when < 0.60) return below(3 * gap + 2);
  if (when < 0.70) return period - now_ % period - below(2);
  if (when < 0.76) return reset - below(2);
  if (when < 0.84) return below(3 * period);
  if (when < 0.87) {
    const std::int64_t day = 86'400 * second_;
    return one_of(12 * 3'600 * second_, 40 * day, 400 * day, std::int64_t{1}, second_ / 1'000'000);
  }
  return below(gap + 1);
}

std::uint64_t RandomTrace::random_cost(const Limit& limit) {
  if (limits_.size() > 1 && chance(0.6)) return 1;
  const auto size = static_cast<std::int64_t>(most_of(limit));
  const auto left = static_cast<std::int64_t>(last_.remaining);
  const std::int64_t cost = one_of<std::int64_t>(1, 1, 1, 1, 1, 0, left, left + 1, size, size + 1,
                                                 between(1, std::max<std::int64_t>(1, size)),
                                                 std::max<std::int64_t>(1, size / 3), size > 1'500 ? 1'500 : 1);
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(cost, 0, kTop));
}

std::vector<TracedCharge> RandomTrace::random_charges(Named& named, const std::string& key, bool older) {
  std::vector<TracedCharge> charges;
  if (older || (limits_.size() == 1 && chance(0.97))) {
    charges.push_back({named.id, key, random_cost(named.present)});
    return charges;
  }
  for (std::int64_t count = between(1, 4); count > 0; --count) {
    const Named& other = limits_[static_cast<std::size_t>(below(static_cast<std::int64_t>(limits_.size())))];
    charges.push_back({other.id, key, random_cost(other.present)});
  }
  return charges;
}

void RandomTrace::make_verb(Operation& operation, Named& named, const std::string& key, double pick) {
  const bool leases = named.limit.algorithm == Algorithm::concurrency;
  operation.verb = "check";
  operation.limit = named.id;
  operation.key = key;
  if (pick < 0.08) {
    operation.verb = "peek";
  } else if (leases && pick < 0.35 && (!leases_.empty() || pick < 0.10)) {
    operation.verb = "release";
    operation.lease = 999;
    if (!leases_.empty()) {
      const auto& lease = leases_[static_cast<std::size_t>(below(static_cast<std::int64_t>(leases_.size())))];
      std::tie(operation.limit, operation.key) = lease.first;
      operation.lease = lease.second;
    }
  } else if (!leases && pick < 0.21) {
    const auto left = static_cast<std::int64_t>(last_.remaining);
    const auto most = static_cast<std::int64_t>(last_.limit);
    const auto size = static_cast<std::uint64_t>(
        std::min(kTop, one_of<std::int64_t>(1, 1, 2, left, most, 3 * most, between(0, most))));
    operation.verb = one_of("refund", "penalize", "settle");
    operation.cost = size;
    operation.reserved = one_of<std::uint64_t>(0, size, size / 2);
    operation.actual = one_of<std::uint64_t>(size, 0, 2 * size / 3);
    if (operation.verb != "penalize" && !charged_.empty() && chance(0.5)) {
      const auto recent = std::min<std::int64_t>(5, static_cast<std::int64_t>(charged_.size()));
      operation.at = charged_[charged_.size() - 1 - static_cast<std::size_t>(below(recent))];
    }
  } else if (pick < 0.24) {
    operation.verb = "set_limit";
    operation.numbers = changed(named.present);
    named.present = with_numbers(named.present, operation.numbers, tick_);
  } else if (pick < 0.25) {
    operation.verb = "reset";
  }
}

Operation RandomTrace::next() {
  if (!todo_.empty()) {
    Operation operation = todo_.front();
    todo_.pop_front();
    return operation;
  }
  Named* named = &limits_[static_cast<std::size_t>(below(static_cast<std::int64_t>(limits_.size())))];
  std::string key = chance(0.15) ? "k1" : "k0";
  const Limit& limit = named->present;
  const std::int64_t period = std::max<std::int64_t>(
      1, (limit.algorithm == Algorithm::concurrency ? limit.ttl : limit.period).count() / nanoseconds_in(tick_));
  const std::int64_t gap =
      std::max<std::int64_t>(1, period / std::max<std::int64_t>(1, static_cast<std::int64_t>(limit.rate)));
  Operation operation;
  operation.now = now_ + std::max<std::int64_t>(0, step(gap, period));
  if (operation.now > kLastDay * 86'400 * second_) operation.now = now_;
  const bool older = !monotone_ && last_took_alone_ && chance(kOlder);
  if (older) {  // an older clock, just after a charge at `now_`
    const TracedCharge& before = last_operation_.charges.front();
    named = &*std::ranges::find(limits_, before.limit, &Named::id);
    key = before.key;
    operation.verb = "check";
    operation.now = std::max<std::int64_t>(
        0, now_ - one_of(std::int64_t{1}, second_ / 1'000'000, second_, 10 * second_, below(5 * period)));
  } else {
    make_verb(operation, *named, key, std::uniform_real_distribution<double>(0, 1)(random_));
  }
  if (operation.verb == "check" || operation.verb == "peek") operation.charges = random_charges(*named, key, older);
  return operation;
}

void RandomTrace::answered(const Operation& operation, const Answer& answer) {
  now_ = std::max(now_, operation.now);
  const bool check = operation.verb == "check";
  const bool took = check && answer.allowed && operation.now == now_ &&
                    std::ranges::any_of(operation.charges, [](const TracedCharge& c) { return c.cost > 0; });
  last_took_alone_ = took && operation.charges.size() == 1;
  if (took) {
    charged_.push_back(operation.now);
    std::vector<std::optional<std::uint64_t>> given = answer.leases;
    if (operation.charges.size() == 1) given = {answer.lease};
    std::size_t next = 0;
    std::set<std::pair<std::string, std::string>> seen;
    for (const TracedCharge& charge : operation.charges) {
      const auto& named = *std::ranges::find(limits_, charge.limit, &Named::id);
      if (named.limit.algorithm != Algorithm::concurrency || !seen.insert({charge.limit, charge.key}).second) continue;
      if (given[next]) leases_.push_back({{charge.limit, charge.key}, *given[next]});
      ++next;
    }
  }
  last_ = answer;
  last_operation_ = operation;
  const bool denied = (check || operation.verb == "peek") && !answer.allowed;
  if (denied && todo_.empty() && chance(0.4) && answer.retry_after != algorithm::kNever &&
      now_ + answer.retry_after <= kLastDay * 86'400 * second_) {
    Operation again = operation;
    again.verb = one_of("check", "peek");
    again.now = now_ + answer.retry_after - 1;
    todo_.push_back(again);
    again.verb = "check";
    ++again.now;
    todo_.push_back(again);
  }
}

}  // namespace sluice::model
