#include "metrics/limit_stats.h"

#include <algorithm>
#include <cmath>

namespace sluice::metrics {

LimitHits& LimitHits::operator+=(const LimitHits& other) {
  total += other.total;
  over += other.over;
  near += other.near;
  within += other.within;
  shadow += other.shadow;
  return *this;
}

LimitHits LimitStats::split(const LimitHit& hit, float near_ratio) {
  const std::uint64_t before = hit.counted - std::min(hit.counted, hit.cost);
  const auto near = static_cast<std::uint64_t>(std::floor(static_cast<float>(hit.limit) * near_ratio));
  LimitHits hits{.total = hit.cost};
  if (!hit.over) {
    hits.within = hit.cost;
    if (hit.counted > near) hits.near = before >= near ? hit.cost : hit.counted - near;
    return hits;
  }
  if (before >= hit.limit) {
    hits.over = hit.cost;
  } else {
    hits.over = hit.counted - hit.limit;
    hits.near = hit.limit - std::min(hit.limit, std::max(near, before));
  }
  if (hit.shadow) hits.shadow = hits.over;
  return hits;
}

template <typename T>
T& LimitStats::at(Names<T>& names, std::string_view name) {
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  return names[std::string(names.size() < kMostNames ? name : kOtherName)];
}

void LimitStats::count(std::string_view name, const LimitHit& hit) {
  const LimitHits hits = split(hit, near_ratio_);
  const std::scoped_lock lock(mutex_);
  at(limits_, name) += hits;
}

void LimitStats::count_unknown_domain(std::string_view domain) {
  const std::scoped_lock lock(mutex_);
  ++at(unknown_domains_, domain);
}

void LimitStats::count_service_error() {
  const std::scoped_lock lock(mutex_);
  ++service_.service_errors;
}

void LimitStats::count_shadowed() {
  const std::scoped_lock lock(mutex_);
  ++service_.shadowed;
}

void LimitStats::count_call(std::uint64_t milliseconds) {
  const std::scoped_lock lock(mutex_);
  ++service_.calls;
  service_.milliseconds += milliseconds;
  const auto bound = std::ranges::lower_bound(ServiceHits::kBounds, milliseconds);
  ++service_.took[static_cast<std::size_t>(bound - ServiceHits::kBounds.begin())];
}

void LimitStats::add_to(Sums& sums) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& [name, hits] : limits_) sums.limits[name] += hits;
  for (const auto& [name, count] : unknown_domains_) sums.unknown_domains[name] += count;
  sums.service.service_errors += service_.service_errors;
  sums.service.shadowed += service_.shadowed;
  sums.service.calls += service_.calls;
  sums.service.milliseconds += service_.milliseconds;
  for (std::size_t i = 0; i < service_.took.size(); ++i) sums.service.took[i] += service_.took[i];
}

}  // namespace sluice::metrics
