// Offsets of a time zone from UTC, read from the system's time zone database.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::algorithm {

/// The offsets of one zone, for the years up to 2263 (all that 64 bits of nanoseconds reach), rules for the future
/// included. Immutable. Times are in seconds since 1970; leap seconds don't exist.
class TimeZone {
 public:
  /// "UTC" is always there; any other IANA name is looked for in the system's database ($TZDIR, /usr/share/zoneinfo).
  /// All that are open at a time share their memory, unless the database has changed meanwhile. Thread-safe.
  [[nodiscard]] static Result<TimeZone> open(const std::string& name);
  /// From the bytes of a TZif file (RFC 8536). For tests and fuzzers.
  [[nodiscard]] static Result<TimeZone> parse(std::string_view file);

  /// Local time minus UTC at an instant, in seconds.
  [[nodiscard]] std::int64_t offset_at(std::int64_t utc) const noexcept;
  /// The first instant at which local clocks show `local` (seconds since 1970 as if it were UTC) or, where they skip
  /// it, something later.
  [[nodiscard]] std::int64_t first_instant(std::int64_t local) const noexcept;

 private:
  // From `start` on, until the next one.
  struct Span {
    std::int64_t start = 0;
    std::int64_t offset = 0;
    friend bool operator==(const Span&, const Span&) = default;
  };

  explicit TimeZone(std::vector<Span> spans) : spans_(std::make_shared<const std::vector<Span>>(std::move(spans))) {}
  void share(const std::string& name);
  [[nodiscard]] std::size_t index_at(std::int64_t utc) const noexcept;

  std::shared_ptr<const std::vector<Span>> spans_;  // never empty; the first starts before all instants
};

}  // namespace sluice::algorithm
