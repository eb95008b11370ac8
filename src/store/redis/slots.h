// Which node of a cluster serves which keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/advice.h"
#include "store/redis/guide.h"
#include "store/redis/key_slot.h"

namespace sluice::store::redis {

/// As CLUSTER SLOTS tells it. A value.
struct SlotMap {
  static constexpr std::uint16_t kNobody = 0xffff;

  std::vector<Address> masters;                                     ///< each once
  std::vector<std::uint16_t> owner = std::vector(kSlots, kNobody);  ///< of each slot, as an index into masters

  /// Nothing: it is not of the agreed shape. `asked`: stands for hosts that the node does not know itself.
  [[nodiscard]] static std::optional<SlotMap> parse(const redisReply& reply, const Address& asked);
};

/// The error of a node that does not tell the map, or of a server that is none, with what to look at.
[[nodiscard]] std::string explain_map_error(std::string_view error);

/// Asks any node of the cluster for the map, again and again. No socket, no clock. Not thread-safe.
class SlotsClient final : public Guide {
 public:
  class Owner {
   public:
    virtual void map_loaded(SlotMap map) = 0;
    /// No node tells; `why` in a node's own words.
    virtual void no_map(std::string_view why) = 0;

   protected:
    ~Owner() = default;
  };

  /// All must outlive it.
  SlotsClient(std::vector<Address> seeds, Login& login, std::uint64_t seed, Owner& owner)
      : Guide(seeds, login, seed), seeds_(std::move(seeds)), owner_(owner) {}

  /// The map may have changed: asks soon. The session is to be woken after it.
  void refresh(std::int64_t now);
  /// While something is wrong it is asked often, and one node after the other.
  void set_trouble(bool is_troubled) { is_troubled_ = is_troubled; }

  void flush(std::int64_t now) override;
  [[nodiscard]] std::int64_t next_wakeup() const override;

 private:
  void ask(std::string& out) override;
  [[nodiscard]] bool heard(const redisReply& reply) override;
  void exhausted(std::string_view why) override { owner_.no_map(why); }
  [[nodiscard]] std::string_view login_advice() const override { return kLogin; }

  const std::vector<Address> seeds_;
  Owner& owner_;
  bool is_troubled_ = false;
  int answers_ = 0;  ///< of this server while something is wrong
  std::int64_t asked_at_ = 0;
  std::int64_t ask_at_ = kNoWakeup;
};

}  // namespace sluice::store::redis
