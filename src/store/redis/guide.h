// Asks servers, in order, for what any of them may know.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/jitter.h"
#include "store/redis/login.h"
#include "store/redis/machine.h"
#include "store/redis/reply_reader.h"

namespace sluice::store::redis {

/// One connection at a time, to one of several servers; a server that cannot be reached, does not answer within
/// half a second or knows nothing is left for the next; after a whole round in vain there is a pause that grows. No
/// socket, no clock. Not thread-safe.
class Guide : public Machine, public Locator {
 public:
  /// `login` must outlive it.
  Guide(std::vector<Address> servers, Login& login, std::uint64_t seed);

  /// Where its own session connects to.
  void locate(Found found) override;

  [[nodiscard]] Wish wish() const override { return wish_; }
  void begin_connect(std::int64_t now) override;
  void finish_disconnect() override { wish_ = Wish::nothing; }
  void connected(std::int64_t now) override;
  void received(std::string_view bytes, std::int64_t now) override;
  void closed(std::int64_t now, std::string_view detail) override;
  void flush(std::int64_t now) override { now_ = now; }
  [[nodiscard]] std::string& output() override { return output_; }
  [[nodiscard]] std::int64_t next_wakeup() const override;
  void wake(std::int64_t now) override;

  [[nodiscard]] const Address& server() const { return servers_[index_]; }

 protected:
  ~Guide() = default;

  /// Appends the question.
  virtual void ask(std::string& out) = 0;
  /// A reply. False: this server is of no use, say() has been told why.
  [[nodiscard]] virtual bool heard(const redisReply& reply) = 0;
  /// A whole round was in vain; `why` names each server and tells why.
  virtual void exhausted(std::string_view why) = 0;
  /// What to look at when a server does not let it in.
  [[nodiscard]] virtual std::string_view login_advice() const = 0;

  /// Why the server at hand is of no use.
  void say(std::string_view why) { why_ = why; }
  /// The question has been answered.
  void satisfied();
  /// Goes to the next server, at once.
  void go_on();
  /// Asks again on the same connection. Precondition: is_satisfied().
  void ask_again();
  [[nodiscard]] bool is_satisfied() const { return state_ == State::satisfied; }
  /// Neither connected nor about to be: a pause after a round in vain.
  [[nodiscard]] bool is_pausing() const { return state_ == State::down && wish_ != Wish::connect; }
  /// Other servers from now on; the one that is connected stays.
  void set_servers(std::vector<Address> servers);
  [[nodiscard]] std::int64_t now() const { return now_; }
  [[nodiscard]] Jitter& jitter() { return jitter_; }

 private:
  enum class State : std::uint8_t { down, connecting, asking, satisfied };
  void in_vain();

  std::vector<Address> servers_;
  Login& login_;
  Jitter jitter_;
  ReplyReader reader_;
  std::string output_;
  std::string why_;   ///< of the server at hand
  std::string whys_;  ///< of those of this round, each with its name
  std::size_t index_ = 0;
  std::size_t tried_ = 0;  ///< servers in a row, in vain
  State state_ = State::down;
  Wish wish_ = Wish::connect;
  bool awaits_login_ = false;
  std::int64_t now_ = 0;
  std::int64_t deadline_ = kNoWakeup;
  std::int64_t retry_at_ = kNoWakeup;
  std::int64_t pause_ = 0;
};

}  // namespace sluice::store::redis
