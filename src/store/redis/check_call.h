// A batch as a call of the script, and the script's answer as decisions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/verdict.h"
#include "store/failure.h"
#include "store/redis/batch.h"
#include "store/redis/key_state.h"
#include "store/redis/reply_reader.h"

namespace sluice::store::redis {

/// `peek` answers as `check` would and changes nothing.
enum class CallKind : std::uint8_t { check = 0, peek = 1 };

/// How many words append_call() appends.
[[nodiscard]] std::size_t words_of_call(const Batch& batch);
/// Appends what follows the script's name in EVALSHA or EVAL: the number of keys, the keys, the arguments, as words in
/// the Redis protocol. Precondition: batch.prepare().
void append_call(std::string& out, const Batch& batch, CallKind kind = CallKind::check);

/// Reads answers of the script. Reusable: buffers keep their capacity. Not thread-safe.
class AnswerReader {
 public:
  /// Called for each key that cannot be used, with what the server says of it.
  using BadKey = std::function<void(Failure failure, std::string_view words)>;

  /// `trusted_lead`: as in the clock prelude, µs.
  explicit AnswerReader(std::int64_t trusted_lead = 0) : trusted_lead_(trusted_lead) {}

  /// Reads into decisions, admitted and failure of the requests sent whose checks are still there. Anything but none:
  /// the whole call has failed, and all of that is meaningless. bad_answer: it is not of the agreed shape, or a verdict
  /// is not the one that the same arithmetic gives here.
  [[nodiscard]] Failure read(const redisReply& reply, Batch& batch, const BadKey& bad_key = {});
  /// The server's time at the call that was read last, µs.
  [[nodiscard]] std::int64_t time() const { return now_; }

 private:
  struct Held {
    KeyState state;
    Failure failure = Failure::none;
    bool is_charged = false;  ///< by the script all the same, which does not look at all of a value
  };
  [[nodiscard]] Failure read_states(const redisReply& reply, const Batch& batch, const BadKey& bad_key);
  [[nodiscard]] bool judge(Batch& batch, Batch::Request& request, char verdict);
  static void blame(Held& held);
  [[nodiscard]] bool follow(std::span<const Batch::Charge> charges, char verdict);
  [[nodiscard]] bool read_verb(const Batch& batch, const Batch::Request& request, const Verb& verb, char verdict);
  std::int64_t trusted_lead_;
  std::int64_t now_ = 0;
  std::vector<Held> held_;  ///< by key
  std::vector<algorithm::Verdict> verdicts_;
};

}  // namespace sluice::store::redis
