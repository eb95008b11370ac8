// Requests that leave together as one call of the script.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/clock.h"
#include "store/failure.h"
#include "store/redis/key.h"
#include "store/redis/redis_limit.h"
#include "store/store.h"

namespace sluice::store::redis {

/// The limit of each charge of a check, in order.
using Limits = std::span<const std::shared_ptr<const RedisLimit>>;

/// Requests in order of arrival over a set of keys: equal (limit, key) of many requests are one key. Bounded, so that
/// the server is never held for long by one call. Knows what it was told even when a check has gone, as later requests
/// of the batch are judged after it. Reusable: buffers keep their capacity. Not thread-safe.
class Batch {
 public:
  /// A batch with one request takes it whatever its size.
  static constexpr std::size_t kMostKeys = 64;
  static constexpr std::size_t kMostCharges = 512;
  static constexpr std::size_t kMostBytes = 65'536;

  struct Key {
    std::size_t name_begin = 0;
    std::size_t name_size = 0;
    std::uint64_t hash = 0;
    std::shared_ptr<const RedisLimit> limit;
    Time caller;                ///< of the first request that charges it
    std::uint32_t place = 0;    ///< in the call, from 1; 0: not in it
    bool begins_limit = false;  ///< in the call, the one before has another limit
  };
  struct Charge {
    std::uint32_t key = 0;
    Enforcement enforcement = Enforcement::enforce;
    std::uint64_t cost = 0;
  };
  struct Request {
    Check* check = nullptr;  ///< null: withdrawn, timed out or answered
    bool is_sent = false;
    std::uint32_t first_charge = 0;
    std::uint32_t charge_count = 0;
    std::optional<Verb> verb;
    std::int64_t deadline = 0;  ///< steady ns, ascending
    Failure failure = Failure::none;
  };

  /// False, with nothing changed: it does not fit any more, or one of its keys is here with other numbers. A verb is
  /// alone in its call.
  [[nodiscard]] bool add(Check& check, Limits limits, const KeyNaming& naming, Time caller, std::int64_t deadline);
  /// Withdraws the request of `check`, if it is here and not yet sent or answered.
  bool withdraw(const Check& check);
  [[nodiscard]] bool is_empty() const { return requests_.empty(); }
  [[nodiscard]] bool is_verb() const { return !requests_.empty() && requests_.front().verb.has_value(); }
  /// Does anybody wait for any of it?
  [[nodiscard]] bool is_awaited() const;

  /// Fixes what is in the next call: requests that somebody waits for, and their keys. How many requests those are.
  std::size_t prepare();
  /// The keys in the call, as indices into keys(), in their places: those of one limit in a row.
  [[nodiscard]] std::span<const std::uint32_t> places() const { return places_; }
  [[nodiscard]] std::size_t sent_keys() const { return places_.size(); }
  /// How many limits they have.
  [[nodiscard]] std::size_t sent_limits() const { return sent_limits_.size(); }
  [[nodiscard]] std::size_t sent_requests() const { return sent_requests_; }

  [[nodiscard]] std::span<const Key> keys() const { return keys_; }
  [[nodiscard]] std::string_view name(const Key& key) const {
    return std::string_view(names_).substr(key.name_begin, key.name_size);
  }
  [[nodiscard]] std::span<Request> requests() { return requests_; }
  [[nodiscard]] std::span<const Request> requests() const { return requests_; }
  [[nodiscard]] std::span<const Charge> charges(const Request& request) const {
    return std::span(charges_).subspan(request.first_charge, request.charge_count);
  }
  void clear();

 private:
  static constexpr std::uint16_t kFree = 0;  ///< in table_; else the key's index + 1

  [[nodiscard]] std::size_t slot_of(std::uint64_t hash, std::string_view name) const;
  void grow_table();
  void forget_keys(std::size_t from);

  std::string names_;
  std::size_t weight_ = 0;  ///< of all keys
  std::vector<Key> keys_;
  std::vector<Charge> charges_;
  std::vector<Request> requests_;
  std::vector<std::uint16_t> table_;  ///< open addressing; its size is a power of two
  std::vector<std::uint32_t> places_;
  std::vector<const RedisLimit*> sent_limits_;
  std::size_t sent_requests_ = 0;
};

}  // namespace sluice::store::redis
