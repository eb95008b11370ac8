// What a caller holds until it says how it went: leases and reservations, as text that the caller keeps.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/request.h"
#include "store/charge.h"

namespace sluice::limiter {

/// Everything that is needed to give back later what was taken now, so that no daemon has to remember it and any daemon
/// on the same store can be told. What may be done once is decided by the leases, which the store keeps.
struct Hold {
  enum class Kind : std::uint8_t { lease = 1, reservation = 2 };
  struct Descriptor {
    std::vector<std::pair<std::string, std::string>> entries;
    std::uint64_t cost = 0;   ///< of a lease: what it weighs in all
    std::uint64_t lease = 0;  ///< 0: none
    /// What it was taken from (see counter_mark); 0: nothing was.
    std::uint32_t mark = 0;
  };
  Kind kind = Kind::lease;
  std::string domain;
  std::vector<Descriptor> descriptors;
  // Of a reservation:
  std::uint64_t cost = 0;       ///< that was charged to each descriptor
  std::uint64_t lease = 0;      ///< by which it is told that it has not ended; 0: nothing limits the request
  std::string place;            ///< key of that lease; the policy may be another one when it ends
  std::uint8_t life = 0;        ///< see reservation_limit
  std::int64_t charged_at = 0;  ///< ns since 1970 UTC by the store's clock
  std::int64_t expires_at = 0;  ///< ″ by the daemon's
  /// Until it expires, from when it was made; not in the text.
  std::chrono::nanoseconds lasts{0};
};

/// As text of letters, digits, - and _.
[[nodiscard]] std::string to_text(const Hold& hold);
/// A lease or a reservation of the request would have a text that no port takes back: above kLongestHold, or of more
/// descriptors or entries than are read.
[[nodiscard]] bool has_too_long_text(const Request& request);
/// Bytes of the longest text. With what stands around it, each port takes that much in one message.
inline constexpr std::size_t kLongestHold = 65'000;
inline constexpr char kTooLongToHold[] =
    "what this request is would be too long to be given back: at most 100 descriptors, and domain, keys and values of "
    "at most 48000 bytes in all, of which each entry uses 6 and each descriptor 40 more";
/// False: it is no such text, or damaged.
[[nodiscard]] bool from_text(std::string_view text, Hold& hold);
/// The same of what is in it, without what shows damage; for tests.
[[nodiscard]] bool from_bytes(std::string_view bytes, Hold& hold);

/// Stands for a counter as long as a reload keeps what was taken from it: another limit has another one, and so has the
/// same limit with another algorithm or other windows, as it begins anew, or with another key, as when all that matches
/// a pattern begins to share one. Not 0.
[[nodiscard]] std::uint32_t counter_mark(const store::Charge& charge);

/// Longest time for which a cost can be reserved.
inline constexpr std::chrono::nanoseconds kLongestReservation = std::chrono::hours(1);
/// Which of a few lives, the shortest that is at least so long: 1 ns … kLongestReservation.
[[nodiscard]] std::uint8_t reservation_life(std::chrono::nanoseconds time);
/// The semaphore without an end whose leases are reservations of that life.
[[nodiscard]] const store::CountedLimit& reservation_limit(std::uint8_t life);

}  // namespace sluice::limiter
