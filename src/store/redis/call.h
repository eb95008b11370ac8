// A batch on its way through clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "store/failure.h"
#include "store/redis/batch.h"

namespace sluice::store::redis {

/// A batch, and how far it has come. Handed from client to client when a cluster moves its keys.
struct Call : Batch {
  bool is_probe = false;
  bool is_sent = false;
  bool is_answered = false;  ///< but replicas have yet to confirm it
  bool is_sealed = false;    ///< takes no more requests
  bool is_asking = false;    ///< goes to a node that is only about to get its keys
  bool is_full = false;      ///< because no more fit
  bool has_failed = false;   ///< was counted as a failure of the server
  std::uint8_t hops = 0;     ///< how often a node has sent it elsewhere
  Failure refusal{};         ///< why a node would not carry it out when it was asked last; none: nobody has refused
  std::uint64_t group = 0;   ///< of keys that may share a call
  std::size_t volley = 0;    ///< once sent
  std::size_t next_deadline = 0;  ///< first request whose deadline has not been looked at
  std::uint64_t serial = 0;       ///< changes with each use and each hand-over, so that a stale entry is known
};

/// Where calls come from and go back to. Not thread-safe.
class CallPool {
 public:
  [[nodiscard]] Call& take() {
    if (free_.empty()) {
      calls_.push_back(std::make_unique<Call>());
      free_.push_back(calls_.back().get());
    }
    Call& call = *free_.back();
    free_.pop_back();
    return call;
  }
  void release(Call& call) {
    call.clear();
    call.is_probe = false;
    call.is_sent = false;
    call.is_answered = false;
    call.is_sealed = false;
    call.is_full = false;
    call.has_failed = false;
    call.hops = 0;
    call.refusal = Failure::none;
    call.is_asking = false;
    call.group = 0;
    call.next_deadline = 0;
    ++call.serial;
    free_.push_back(&call);
  }

 private:
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<Call*> free_;
};

}  // namespace sluice::store::redis
