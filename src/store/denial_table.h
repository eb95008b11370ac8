// Denials of a shared store that are still true.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sluice/decision.h"
#include "store/charge.h"

namespace sluice::store {

/// A counter's key as a number: 128 bits, so that no two are the same in practice.
struct DenialKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const DenialKey&, const DenialKey&) = default;
};

/// The key of one counter. Seeded per process. Cost: one hash of the key's bytes.
[[nodiscard]] DenialKey denial_key(const CountedLimit& limit, std::string_view key);

/// Tells the tables of all io threads which denials are not true any more: tokens were given back, or numbers changed.
/// Thread-safe.
class DenialEpochs {
 public:
  /// To be called when the shared store has answered, or lost, a verb that changes this counter.
  void forget(const CountedLimit& limit, std::string_view key);
  /// To be called when a policy was loaded.
  void forget_all();

  /// Changes with each of these.
  [[nodiscard]] std::uint64_t latest() const { return latest_.load(std::memory_order_acquire); }
  /// Changes when the denials of this key are to be forgotten.
  [[nodiscard]] std::uint64_t of(const DenialKey& key) const {
    return all_.load(std::memory_order_acquire) + shares_[key.high % shares_.size()].load(std::memory_order_acquire);
  }

 private:
  std::atomic<std::uint64_t> latest_{0};
  std::atomic<std::uint64_t> all_{0};
  std::array<std::atomic<std::uint64_t>, 1'024> shares_{};
};

/// The last denial of each of a bounded number of counters, until the time when it may be otherwise. Not thread-safe.
/// Cost: a look-up reads one or two cache lines, or none while nothing was denied lately.
class DenialTable {
 public:
  /// Memory: 104 bytes an entry, taken with the first denial.
  static constexpr std::size_t kEntries = 8'192;

  struct Denial {
    std::uint64_t cost = 0;  ///< that was denied
    std::int64_t at = 0;     ///< steady ns: the denial was made then or later
    std::int64_t until = 0;  ///< steady ns: true before that
    Decision decision;
  };

  explicit DenialTable(const DenialEpochs& epochs) : epochs_(epochs) {}

  /// True at `now`, or null.
  [[nodiscard]] const Denial* find(const DenialKey& key, const Limit& numbers, std::int64_t now) const;
  /// Remembers a denial in place of the one that is there, or of the one that ends first.
  void put(const DenialKey& key, const Limit& numbers, const Denial& denial);
  void erase(const DenialKey& key);
  /// May find() find anything?
  [[nodiscard]] bool is_empty(std::int64_t now) const { return now >= latest_until_; }

 private:
  static constexpr std::size_t kWays = 4;
  struct Entry {
    DenialKey key;
    std::uint64_t numbers = 0;  ///< stands for the limit's
    std::uint64_t epoch = 0;
    Denial denial;
  };

  [[nodiscard]] static std::size_t first_of(const DenialKey& key) { return key.low % (kEntries / kWays) * kWays; }

  const DenialEpochs& epochs_;
  std::vector<Entry> entries_;
  std::int64_t latest_until_ = INT64_MIN;
};

}  // namespace sluice::store
