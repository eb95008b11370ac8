// The lines of those keys at which somebody waits or has a reservation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/clock.h"
#include "sluice/reservation.h"
#include "store/memory/key_hash.h"
#include "waiting/account.h"
#include "waiting/queue.h"

namespace sluice::keyed {

/// Where the states of keys are.
class Store {
 public:
  using Change = std::function<void(const waiting::Book& book, waiting::State& state, std::int64_t at)>;
  /// Calls change() on a key's state, with its shard locked.
  virtual void change(const store::memory::KeyHash::Spot& spot, std::int64_t now, const Change& change) = 0;

 protected:
  ~Store() = default;
};

/// The line of one key.
class KeyedLine final : public waiting::Account {
 public:
  using Spot = store::memory::KeyHash::Spot;

  KeyedLine(Store& store, const Spot& spot, std::shared_mutex& numbers, waiting::Queue::Order order)
      : store_(store), spot_(spot), numbers_(numbers), queue_(*this, order) {}

  [[nodiscard]] waiting::Queue& queue() { return queue_; }
  [[nodiscard]] const Spot& spot() const { return spot_; }

  [[nodiscard]] std::shared_lock<std::shared_mutex> keep_numbers() const override { return std::shared_lock(numbers_); }
  [[nodiscard]] std::int64_t machine_now() const noexcept override;

 private:
  void step(std::int64_t now, Step& change) noexcept override {
    store_.change(spot_, now, [&change](const waiting::Book& book, waiting::State& state, std::int64_t at) {
      change(book, state, at);
    });
  }

  Store& store_;
  const Spot spot_;
  std::shared_mutex& numbers_;
  waiting::Queue queue_;
};

/// A line is there while somebody has it: for the time of a wait, as long as a reservation is held, and until the
/// instants of those that were committed have come. Thread-safe.
class KeyedLines {
 public:
  using Spot = store::memory::KeyHash::Spot;

  KeyedLines(Store& store, waiting::Queue::Order order) : store_(store), order_(order) {}

  /// A key's line, if there is one. Cost where no key has one: a load.
  [[nodiscard]] std::shared_ptr<KeyedLine> find(const Spot& spot);
  /// A key's line, made if there is none.
  [[nodiscard]] std::shared_ptr<KeyedLine> line(const Spot& spot, const Clock* clock);
  /// Keeps a line until it is idle.
  void keep_until_idle(std::shared_ptr<KeyedLine> line);
  [[nodiscard]] std::vector<std::shared_ptr<KeyedLine>> all();

  /// Locked by whoever puts new numbers in the place of those that the lines go by.
  [[nodiscard]] std::shared_mutex& numbers() { return numbers_; }

 private:
  struct Hash {
    std::size_t operator()(const Spot& spot) const noexcept { return static_cast<std::size_t>(spot.place); }
  };
  struct Same {
    bool operator()(const Spot& a, const Spot& b) const noexcept { return a.place == b.place && a.key.is_same(b.key); }
  };

  void remove(KeyedLine* line);
  [[nodiscard]] std::shared_ptr<KeyedLine> next_resting();

  Store& store_;
  const waiting::Queue::Order order_;
  std::shared_mutex numbers_;
  std::mutex mutex_;
  std::unordered_map<Spot, std::weak_ptr<KeyedLine>, Hash, Same> lines_;
  std::vector<std::shared_ptr<KeyedLine>> resting_;  // the last but one, as its end is remove()
  std::size_t turn_ = 0;
  std::atomic<std::size_t> size_{0};
};

/// A reservation's way back to its key's line.
class KeyedReserver final : public internal::Reserver {
 public:
  KeyedReserver(KeyedLines& lines, std::shared_ptr<KeyedLine> line) : lines_(lines), line_(std::move(line)) {}

  // Each ends this object.
  Decision cancel(void* held, std::int64_t now) noexcept override;
  void keep(void* held) noexcept override;
  [[nodiscard]] std::int64_t now() const noexcept override { return line_->queue().now(); }

 private:
  KeyedLines& lines_;
  std::shared_ptr<KeyedLine> line_;
};

}  // namespace sluice::keyed
