// A service as queueing theory has it, on virtual time: calls come at random, a limiter lets them in, `workers` serve
// them first come first served.
#pragma once

#include <cstdint>
#include <deque>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "sluice/adaptive_concurrency.h"

namespace sluice::adaptive {

class ServerModel {
 public:
  struct Service {
    std::uint64_t workers = 10;
    double mean_seconds = 0.01;
    bool random = true;  // exponential, else all alike
    bool down = false;   // every call is a drop, at once
  };
  struct Seen {
    std::uint64_t offered = 0;
    std::uint64_t served = 0;
    std::uint64_t denied = 0;
    std::uint64_t lowest_limit = UINT64_MAX;
    std::uint64_t highest_limit = 0;
    double mean_limit = 0;        // by calls offered
    double mean_latency = 0;      // seconds
    bool over_the_limit = false;  // more in flight than the limit right after one was let in
  };

  ServerModel(AdaptiveConcurrency& limiter, const Service& service, std::uint64_t seed)
      : service_(service), limiter_(limiter), engine_(seed) {}

  void change(const Service& service) { service_ = service; }

  // For `seconds` from now on, calls come at `per_second`, at random.
  Seen run(double seconds, double per_second) {
    Seen seen;
    const std::int64_t end = now_ + ns(seconds);
    std::int64_t arrival = now_ + ns(exponential(1 / per_second));
    double limits = 0;
    double latencies = 0;
    while (std::min(arrival, next_end()) < end) {
      if (next_end() <= arrival) {
        now_ = next_end();
        Call call = std::move(const_cast<Call&>(in_service_.top()));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
        in_service_.pop();
        call.permit.success(time());
        latencies += static_cast<double>(now_ - call.came);
        ++seen.served;
        serve();
        continue;
      }
      now_ = arrival;
      arrival += ns(exponential(1 / per_second));
      ++seen.offered;
      auto permit = limiter_.try_acquire(time());
      const auto figures = limiter_.figures();
      if (permit && figures.in_flight > figures.limit) seen.over_the_limit = true;
      limits += static_cast<double>(figures.limit);
      seen.lowest_limit = std::min(seen.lowest_limit, figures.limit);
      seen.highest_limit = std::max(seen.highest_limit, figures.limit);
      if (!permit) {
        ++seen.denied;
      } else if (service_.down) {
        permit.drop(time());
      } else {
        waiting_.push_back({now_, 0, std::move(permit)});
        serve();
      }
    }
    now_ = end;
    seen.mean_limit = limits / static_cast<double>(seen.offered);
    seen.mean_latency = latencies / 1e9 / static_cast<double>(seen.served);
    return seen;
  }

 private:
  struct Call {
    std::int64_t came;
    std::int64_t ends;
    AdaptiveConcurrency::Permit permit;
    friend bool operator<(const Call& a, const Call& b) { return a.ends > b.ends; }
  };

  static std::int64_t ns(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }
  [[nodiscard]] Time time() const { return {.steady = now_, .utc = 0}; }
  [[nodiscard]] std::int64_t next_end() const { return in_service_.empty() ? INT64_MAX : in_service_.top().ends; }
  double exponential(double mean) { return std::exponential_distribution<double>(1 / mean)(engine_); }

  void serve() {
    while (!waiting_.empty() && in_service_.size() < service_.workers) {
      Call call = std::move(waiting_.front());
      waiting_.pop_front();
      call.ends = now_ + ns(service_.random ? exponential(service_.mean_seconds) : service_.mean_seconds);
      in_service_.push(std::move(call));
    }
  }

  Service service_;
  AdaptiveConcurrency& limiter_;
  std::mt19937_64 engine_;
  std::int64_t now_ = 1'767'225'600'000'000'000;
  std::deque<Call> waiting_;
  std::priority_queue<Call> in_service_;
};

}  // namespace sluice::adaptive
