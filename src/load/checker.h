// Compares what was admitted with the most that may have been.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "load/bound.h"
#include "sluice/clock.h"
#include "sluice/limit.h"

namespace sluice::load {

/// What happened to the store in the meantime, as far as it makes more than the bound lawful.
struct Allowance {
  std::uint64_t restarts = 0;         ///< of the store, empty: + capacity each, for every key
  std::uint64_t evictions = 0;        ///< keys dropped: + capacity each, for all keys together
  std::uint64_t nodes = 1;            ///< that may answer by themselves (on_store_failure: local)
  std::chrono::nanoseconds outage{};  ///< how long they could, where answers don't tell who gave them
  std::chrono::nanoseconds slack{};   ///< between this clock and the one that judges
};

/// How an answer came about, as far as the one who asked was told.
enum class Answered : std::uint8_t {
  admitted,        ///< by the store, or by whom the answer does not tell
  admitted_local,  ///< by the node itself, as the store had failed
  admitted_blind,  ///< let through without being counted, as the store had failed (on_store_failure: allow)
  denied,
  denied_blind,  ///< without being judged, as the store had failed (on_store_failure: deny)
  failed         ///< no answer, or an error: nothing is known to be admitted
};

/// What came out for one key.
struct KeyReport {
  std::string name;
  std::uint64_t admitted = 0;  ///< tokens
  std::uint64_t bound = 0;
  std::uint64_t excess = 0;  ///< by which `admitted` is more
};

struct CheckReport {
  std::size_t keys = 0;       ///< that were asked for
  std::size_t keys_over = 0;  ///< that were admitted more than their bound
  std::uint64_t admitted = 0;
  std::uint64_t admitted_local = 0;
  std::uint64_t admitted_blind = 0;
  std::uint64_t bound = 0;    ///< of all keys together
  std::uint64_t excess = 0;   ///< of all keys that are over
  std::uint64_t allowed = 0;  ///< of that excess: what evictions explain
  KeyReport worst;            ///< the key with the greatest excess, or else nearest to its bound
  /// Keys of which at least twice their bound was asked, and what part of their bounds they were admitted, all together
  /// and the least of them; nothing when there are none.
  std::size_t keys_wanted = 0;
  std::optional<double> used;
  std::optional<double> used_least;

  [[nodiscard]] bool is_within() const { return excess <= allowed; }
};

/// Not thread-safe. About 100 bytes a key; sliding logs and leases also 24 a request admitted, as for them any window
/// of the length is looked at, not only the whole.
class Checker {
 public:
  using KeyId = std::uint32_t;

  /// `limit` is copied once for each distinct one. The same name and limit are the same key.
  [[nodiscard]] KeyId key(const Limit& limit, std::string_view name);
  /// One request: `sent` before it left, `answered` after its answer had come.
  void note(KeyId key, std::uint64_t cost, Time sent, Time answered, Answered how);
  /// What another has seen of the same keys, at the same time.
  void add(const Checker& other);

  [[nodiscard]] CheckReport report(const Allowance& allowance = {}) const;
  [[nodiscard]] KeyReport report(KeyId key, const Allowance& allowance = {}) const;
  [[nodiscard]] std::size_t keys() const { return keys_.size(); }

 private:
  struct Span {
    Time begin;
    Time end;
    bool is_empty = true;
    void cover(Time from, Time to);
    void cover(const Span& other);
    [[nodiscard]] std::chrono::nanoseconds length() const {
      return std::chrono::nanoseconds(end.steady - begin.steady);
    }
  };
  struct Event {
    std::int64_t sent;
    std::int64_t answered;
    std::uint64_t cost;
  };
  struct Key {
    std::uint32_t limit = 0;
    std::uint64_t asked = 0;
    std::uint64_t admitted = 0;
    std::uint64_t local = 0;
    std::uint64_t blind = 0;
    Span asking;     ///< of all requests
    Span admitting;  ///< of those admitted
    Span rescuing;   ///< of those admitted by the node itself
    std::vector<Event> events;
  };

  [[nodiscard]] std::uint64_t bound_of(const Key& key, const Span& span, const Allowance& allowance) const;
  [[nodiscard]] std::uint64_t window_excess(const Key& key, const Allowance& allowance) const;
  [[nodiscard]] std::uint64_t local_excess(const Key& key, const Allowance& allowance) const;
  [[nodiscard]] KeyReport report_of(const Key& key, const Allowance& allowance) const;

  std::vector<Limit> limits_;
  std::vector<Key> keys_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, KeyId> ids_;  ///< by limit and name
};

}  // namespace sluice::load
