// Judges as envoyproxy/ratelimit does: each charge by itself, by what has been counted, denied or not.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "store/store.h"

namespace sluice::compat {

/// Puts the charges of a request one by one to the store below, which counts them; those of a limit with a threshold
/// are judged by it afterwards. A request is admitted as by any other store, but what it was charged stays charged when
/// it is not. Limits per second can have a store of their own. Not thread-safe: one for each io thread.
class CountingStore final : public store::Store {
 public:
  struct Stores {
    std::shared_ptr<store::Store> main;
    std::shared_ptr<store::Store> per_second;  ///< null: `main` has those, too
  };

  /// `each`: false leaves the charges of a request together, all or nothing, but for what lies in another store.
  CountingStore(Stores stores, bool each);
  ~CountingStore() override;

  [[nodiscard]] store::Progress check(store::Check& check, Time now) override;
  [[nodiscard]] store::Progress apply(store::Check& check, Time now) override;
  void cancel(store::Check& check) override;
  [[nodiscard]] bool ready() const override;
  void tend(Time now) override;

 private:
  class Part;
  struct Job;

  [[nodiscard]] store::Store& store_of(const store::Charge& charge) const;
  [[nodiscard]] store::Progress start(store::Check& check, Time now);
  [[nodiscard]] std::size_t part_end(const store::Check& check, std::size_t begin) const;
  void part_answered(Job& job);
  void settle(Job& job);
  [[nodiscard]] Job& take_job();
  void release(Job& job);

  Stores stores_;
  bool each_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Job*> free_;
};

/// Turns what a store that only counts has said about a charge of a limit with a threshold into its verdict. Returns
/// what is counted after it. Pure.
std::uint64_t judge_by_threshold(const store::Charge& charge, Decision& decision);

}  // namespace sluice::compat
