// What a request is about: descriptors → the limits that they match → the counters of those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "policy/request.h"
#include "policy/rule.h"
#include "store/charge.h"

namespace sluice::limiter {

/// Reusable: buffers keep their capacity. Not thread-safe.
class ChargeList {
 public:
  static constexpr std::size_t kNoCharge = SIZE_MAX;

  /// Of one descriptor.
  struct Matched {
    /// Null: nothing limits it, or another limit of the request replaces what does. The policy's, or of this list.
    const policy::Rule* rule = nullptr;
    std::size_t charge = kNoCharge;  ///< index of its charge; none without a rule and of an unlimited one
    bool is_override = false;        ///< by a limit that the descriptor brought
    std::uint64_t cost = 0;
    std::size_t key_begin = 0;
    std::size_t key_end = 0;
    // NOLINTNEXTLINE(readability-redundant-member-init): gcc warns of designated initializers that leave it out
    std::string stats_name{};  ///< if names are wanted: of its statistics; empty without a rule
  };

  void clear();
  /// Matches the descriptors of `request` in `domain` of `policy`. The request's views need not live on; rules and
  /// charges hold until the next change, as long as `policy` lives.
  /// `wants_names`: the names that its statistics have in envoyproxy/ratelimit are needed, too.
  void collect(const Request& request, const policy::Policy& policy, const policy::Domain& domain,
               bool wants_names = false);

  /// One per descriptor, in order.
  [[nodiscard]] std::span<const Matched> matched() const { return matched_; }
  /// In the order of their first descriptors, distinct in (limit id, key): costs of equal ones are summed, up to
  /// store::kNeverFits. But where a policy counts each by itself, as envoyproxy/ratelimit does, there is one for each.
  /// Last the lease of a reservation, if one is asked for.
  [[nodiscard]] std::span<const store::Charge> charges() const { return charges_; }
  /// The same without that lease.
  [[nodiscard]] std::span<const store::Charge> own_charges() const {
    return std::span(charges_).first(first_descriptors_.size());
  }
  [[nodiscard]] bool has_reservation() const { return charges_.size() > first_descriptors_.size(); }
  /// Does any limit give leases?
  [[nodiscard]] bool has_leases() const;
  /// The first part of a key, which decides where in a cluster it lies.
  [[nodiscard]] static std::string_view place_of(std::string_view key) { return key.substr(0, key.find('|')); }
  /// The descriptor that a charge is first of.
  [[nodiscard]] std::uint32_t descriptor_of(std::size_t charge) const { return first_descriptors_[charge]; }

  /// The cost of one descriptor.
  [[nodiscard]] static std::uint64_t cost_of(const Descriptor& descriptor, const Request& request) {
    return descriptor.cost.value_or(request.cost);
  }

 private:
  void match(const Request& request, const policy::Policy& policy, const policy::Domain& domain);
  void drop_replaced();
  void name(const Request& request);
  void collect_charges(bool sums_equal);

  std::deque<policy::Rule> overrides_;
  std::string keys_;
  std::vector<Matched> matched_;
  std::vector<bool> replaced_;
  std::vector<store::Charge> charges_;
  std::vector<std::uint32_t> first_descriptors_;
};

}  // namespace sluice::limiter
