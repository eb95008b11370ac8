// Where the master is, as sentinels say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/advice.h"
#include "store/redis/guide.h"

namespace sluice::store::redis {

/// A sentinel's error, or that of a server that is none, with what to look at.
[[nodiscard]] std::string explain_sentinel_error(std::string_view error);

/// Asks one sentinel for the master and then listens there for switches; each question anew goes to the next sentinel,
/// as the last answer was of no use. No socket, no clock. Not thread-safe.
class SentinelClient final : public Guide {
 public:
  class Owner {
   public:
    /// The sentinels name this master now. Told with each answer, whether it has changed or not.
    virtual void master_is(const Address& address) = 0;

   protected:
    ~Owner() = default;
  };

  /// All must outlive it.
  SentinelClient(std::vector<Address> sentinels, std::string master, Login& login, std::uint64_t seed, Owner& owner)
      : Guide(std::move(sentinels), login, seed), master_(std::move(master)), owner_(owner) {}

  /// The master's address: what was said since this was called last, or else the next answer. Each answer is given
  /// once. The session is to be woken after it.
  void find_master(Found found);
  void forget_questions() { asking_.clear(); }

 private:
  void ask(std::string& out) override;
  [[nodiscard]] bool heard(const redisReply& reply) override;
  void exhausted(std::string_view why) override;
  [[nodiscard]] std::string_view login_advice() const override { return kSentinelLogin; }

  void learn(const Address& address);

  const std::string master_;
  Owner& owner_;
  std::vector<Found> asking_;
  std::optional<Address> fresh_;  ///< said, and not given yet
  int replies_ = 0;               ///< on this connection
};

}  // namespace sluice::store::redis
