// A request whose keys cannot share a call: several steps, all or nothing all the same.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/redis/batch.h"
#include "store/store.h"

namespace sluice::store::redis {

/// A check of the store's own.
class Step : public Check {
 public:
  std::int64_t answered_at = 0;  ///< the server's time, ns since 1970 UTC; set before complete()

 protected:
  Step() = default;
  ~Step() = default;
};

/// Each group of keys is a step that is all or nothing by itself and takes at once; when any of them is refused or
/// fails, what the others took is given back. So nothing is ever admitted beyond a limit, and another request may be
/// denied in between. Slots of leaky buckets cannot be given back, as they could be given twice; so the steps with such
/// come last, one after the other. Reusable. Not thread-safe.
class SplitCheck {
 public:
  /// One group of keys.
  class Part final : public Step {
   public:
    explicit Part(SplitCheck& whole) : whole_(whole) {}
    void complete() override { whole_.completed(*this); }

    std::uint64_t group = 0;
    std::vector<Charge> own_charges;
    std::vector<std::shared_ptr<const RedisLimit>> limits;
    /// What the client's link was when the part was sent there: what was charged elsewhere is not given back here.
    std::uint64_t link_serial = 0;

   private:
    friend SplitCheck;
    enum class State : std::uint8_t { fresh, pending, over };
    std::vector<std::uint32_t> places_;  ///< of the charges, in the request
    std::vector<Decision> own_decisions_;
    std::vector<Decision> own_untaken_;
    std::vector<std::uint64_t> own_leases_;
    State state_ = State::fresh;
    bool is_leaky_ = false;
    SplitCheck& whole_;
  };

  class Owner {
   public:
    /// Submits a part; anything but none: it has failed at once.
    [[nodiscard]] virtual Failure submit_part(SplitCheck& split, Part& part) = 0;
    /// One of a part's charges is to be given back, once, by this verb, which knows the charge's time or entry and so
    /// does nothing once that no longer counts. Nothing: it cannot be given back.
    virtual void give_back(const SplitCheck& split, const Part& part, std::size_t charge,
                           const std::optional<Verb>& verb) = 0;
    /// The request is answered.
    virtual void split_done(SplitCheck& split) = 0;

   protected:
    ~Owner() = default;
  };

  explicit SplitCheck(Owner& owner) : owner_(owner) {}

  /// A check or a peek. `groups`: of each charge. `outer` must stay until split_done(), or until it is withdrawn.
  void start(Check& outer, Limits limits, const std::vector<std::uint64_t>& groups, Time caller, std::int64_t deadline);
  /// The caller has gone: what was asked for is seen through all the same.
  void withdraw();

  /// Nobody waits any more.
  void clear() { outer_ = nullptr; }

  [[nodiscard]] Check* outer() const { return outer_; }
  [[nodiscard]] Time caller() const { return caller_; }
  [[nodiscard]] std::int64_t deadline() const { return deadline_; }
  /// The parts, to see whether they may be submitted at all.
  [[nodiscard]] std::size_t size() const { return used_; }
  [[nodiscard]] Part& part(std::size_t i) { return *parts_[i]; }
  /// Submits them. Precondition: start(). Calls split_done() at the end, perhaps within this call.
  void go();

 private:
  [[nodiscard]] Part& part_of(std::uint64_t group);
  void completed(Part& part);
  void submit(Part& part);
  void advance();
  void finish();
  void undo();
  [[nodiscard]] static std::optional<Verb> undoing(const Part& part, std::size_t charge);
  [[nodiscard]] bool is_refused() const;
  void tell(Part& part, bool untaken);

  Owner& owner_;
  Check* outer_ = nullptr;
  std::vector<Charge> charges_;  ///< of the request, as the caller may go
  std::vector<Decision> decisions_;
  std::vector<std::uint64_t> leases_;
  std::deque<CountedLimit> kept_limits_;  ///< of a request whose caller has gone
  std::deque<std::string> kept_keys_;
  bool is_peek_ = false;
  Time caller_;
  std::int64_t deadline_ = 0;
  std::vector<std::unique_ptr<Part>> parts_;  ///< more than are used may be there
  std::size_t used_ = 0;
  std::size_t pending_ = 0;
  bool submitting_ = false;
};

}  // namespace sluice::store::redis
