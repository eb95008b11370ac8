// A request as every front hands it to the limiter: names to be counted, in Envoy's terms.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sluice {

/// One key/value pair of a descriptor. Views into the front's buffer.
struct Entry {
  std::string_view key;
  std::string_view value;
};

/// Window lengths of Envoy's RateLimitService, with its numbers. A month is 30 days, a year 365 (windows aligned to the
/// epoch).
enum class Unit : std::uint8_t {
  unknown = 0,
  second = 1,
  minute = 2,
  hour = 3,
  day = 4,
  month = 5,
  year = 6,
  week = 7
};

/// A limit that the request itself brings (RateLimitDescriptor.limit): it goes before the policy's.
struct LimitOverride {
  std::uint32_t requests_per_unit = 0;
  Unit unit = Unit::second;
};

struct Descriptor {
  std::span<const Entry> entries;
  std::optional<std::uint64_t> cost;  ///< of this descriptor alone; 0 looks without taking
  std::optional<LimitOverride> limit;
};

struct Request {
  std::string_view domain;
  std::span<const Descriptor> descriptors;
  std::uint64_t cost = 1;  ///< of descriptors without one of their own
  bool peek = false;       ///< tell how it would be answered, and take nothing
  bool has_cost = false;   ///< RateLimitService: the request itself gives its `hits_addend`
  bool leases = false;     ///< who asks can give leases back, so limits of concurrency may be asked, too
  bool explain = false;    ///< tell of each limit by what it judged, and what it would say by itself
  /// Not 0: the cost is known only afterwards; until then it is reserved, for at most so long.
  std::chrono::nanoseconds reserve{0};
};

}  // namespace sluice
