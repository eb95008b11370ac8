// Hits of limits by the names and rules of envoyproxy/ratelimit, for its statistics.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sluice::metrics {

/// What one limit's statistics hold, in hits.
struct LimitHits {
  std::uint64_t total = 0;
  std::uint64_t over = 0;
  std::uint64_t near = 0;
  std::uint64_t within = 0;
  std::uint64_t shadow = 0;
  LimitHits& operator+=(const LimitHits& other);
};

/// One charge and what had been counted after it.
struct LimitHit {
  std::uint64_t cost = 0;
  std::uint64_t counted = 0;  ///< after the charge
  std::uint64_t limit = 0;
  bool over = false;    ///< above the limit
  bool shadow = false;  ///< of a limit in `shadow_mode`
};

/// What is no limit's.
struct ServiceHits {
  std::uint64_t service_errors = 0;
  std::uint64_t shadowed = 0;  ///< requests that SHADOW_MODE let pass
  std::uint64_t calls = 0;     ///< answered over gRPC, with their time
  std::uint64_t milliseconds = 0;
  /// Of those, how many took at most so many whole ms, and more than the bound before.
  static constexpr std::array<std::uint64_t, 14> kBounds{0,   1,   2,   5,    10,   25,   50,
                                                         100, 250, 500, 1000, 2500, 5000, 10000};
  std::array<std::uint64_t, kBounds.size() + 1> took{};  ///< the last: longer than all
};

/// One io thread's. Names may come from clients, so at most kMostNames of each kind are kept: hits of further ones are
/// those of kOtherName. Thread-safe: the owner counts (some 50 ns: an uncontended lock and a look-up), anybody reads.
class LimitStats {
 public:
  static constexpr std::size_t kMostNames = 20'000;
  static constexpr std::string_view kOtherName = "other";

  /// From `near_ratio` of a limit on, hits are near it.
  explicit LimitStats(float near_ratio) : near_ratio_(near_ratio) {}

  /// `name`: domain.key[_value]…
  void count(std::string_view name, const LimitHit& hit);
  void count_unknown_domain(std::string_view domain);
  void count_service_error();
  void count_shadowed();
  /// A call over gRPC that took so long.
  void count_call(std::uint64_t milliseconds);

  /// The sums of several, in the order of their names.
  struct Sums {
    std::map<std::string, LimitHits> limits;
    std::map<std::string, std::uint64_t> unknown_domains;
    ServiceHits service;
  };
  void add_to(Sums& sums) const;

  /// How a charge is spread over the statistics: a large one may be partly within, near and over its limit.
  [[nodiscard]] static LimitHits split(const LimitHit& hit, float near_ratio);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  template <typename T>
  using Names = std::unordered_map<std::string, T, Hash, std::equal_to<>>;

  template <typename T>
  static T& at(Names<T>& names, std::string_view name);

  float near_ratio_;
  mutable std::mutex mutex_;
  Names<LimitHits> limits_;
  Names<std::uint64_t> unknown_domains_;
  ServiceHits service_;
};

}  // namespace sluice::metrics
