// Two threads on one keyed limiter, or each on one of its own; and the same of bare memory.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "keys.h"
#include "sluice/keyed.h"
#include "sluice/token_bucket.h"
#include "workloads.h"

namespace sluice::bench {

namespace {

constexpr std::int64_t kStart = 1'767'225'600'000'000'000;
constexpr std::int64_t kStep = 100;
constexpr std::size_t kAtOnce = 32;
constexpr TokenBucket::Numbers kNumbers{.rate = 1, .period = std::chrono::hours(1), .burst = 1'000'000};

// As by default, and room, so that none is put out for another.
constexpr KeyedOptions kRoom{.max_keys = 12'500'000};

Time at(std::int64_t now) { return {.steady = now, .utc = now}; }

// So many keys, one behind the other, in the order in which they are asked for.
class Keys {
 public:
  explicit Keys(std::uint64_t count) : count_(count), bytes_(count * kKeyBytes) {
    std::string key;
    for (std::uint64_t i = 0; i < count; ++i) {
      write_key(i, key);
      key.copy(&bytes_[i * kKeyBytes], kKeyBytes);
    }
  }
  [[nodiscard]] std::uint64_t size() const { return count_; }
  [[nodiscard]] std::string_view operator[](std::uint64_t i) const { return {&bytes_[i * kKeyBytes], kKeyBytes}; }

 private:
  std::uint64_t count_;
  std::vector<char> bytes_;
};

template <std::uint64_t kCount>
const Keys& keys() {
  static const Keys all(kCount);
  return all;
}

// One for both, and one for the second thread when each has its own. Made once.
template <std::uint64_t kCount>
struct Limiters {
  Limiters() {
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const std::string_view key = keys<kCount>()[mix(i) % kCount];  // most, not in the order of the calls
      static_cast<void>(first.try_acquire(key, 1, at(kStart)));
      static_cast<void>(second.try_acquire(key, 1, at(kStart)));
    }
    for (std::uint64_t i = 0; i < kCount; ++i) {
      static_cast<void>(first.try_acquire(keys<kCount>()[i], 1, at(kStart)));
      static_cast<void>(second.try_acquire(keys<kCount>()[i], 1, at(kStart)));
    }
  }
  static Limiters& made() {
    static Limiters all;
    return all;
  }
  Keyed<TokenBucket> first{kNumbers, kRoom};
  Keyed<TokenBucket> second{kNumbers, kRoom};
};

// What a limiter cannot do without: a cache line at random, changed atomically. As much memory as the limiter has.
template <std::uint64_t kCount>
struct Lines {
  struct alignas(64) Line {
    std::atomic<std::uint64_t> word{1};
  };
  static Lines& made() {
    static Lines all;
    return all;
  }
  // That of a key, in one of both.
  static Line& of(std::vector<Line>& lines, std::string_view key) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, key.data() + kKeyBytes - sizeof bytes, sizeof bytes);
    return lines[static_cast<std::size_t>((mix(bytes) >> 32U) * lines.size() >> 32U)];
  }
  std::vector<Line> first = std::vector<Line>(kCount * 5 / 6);
  std::vector<Line> second = std::vector<Line>(kCount * 5 / 6);
};

template <std::uint64_t kCount, bool kApart>
Result decisions(const Amount& amount) {
  auto& limiters = Limiters<kCount>::made();
  return together(amount, 2, [&](unsigned thread) {
    auto& limiter = kApart && thread == 1 ? limiters.second : limiters.first;
    return [&limiter, now = kStart, turn = Turn(kCount, thread * kCount / 2)]() mutable {
      return limiter.try_acquire(keys<kCount>()[turn.next()], 1, at(now += kStep)).allowed;
    };
  });
}

template <std::uint64_t kCount, bool kApart>
Result decisions_32(const Amount& amount) {
  auto& limiters = Limiters<kCount>::made();
  return together(amount, 2, [&](unsigned thread) {
    auto& limiter = kApart && thread == 1 ? limiters.second : limiters.first;
    return [&limiter, now = kStart, turn = Turn(kCount, thread * kCount / 2), next = kAtOnce,
            asked = std::array<std::string_view, kAtOnce>(), found = std::array<Decision, kAtOnce>()]() mutable {
      if (next == kAtOnce) {
        for (auto& key : asked) key = keys<kCount>()[turn.next()];
        now += kStep * static_cast<std::int64_t>(kAtOnce);
        limiter.try_acquire_many(asked, found, at(now));
        next = 0;
      }
      return found[next++].allowed;
    };
  });
}

template <std::uint64_t kCount, bool kApart>
Result lines(const Amount& amount) {
  auto& all = Lines<kCount>::made();
  return together(amount, 2, [&](unsigned thread) {
    auto& own = kApart && thread == 1 ? all.second : all.first;
    return [&own, turn = Turn(kCount, thread * kCount / 2)]() mutable {
      auto& word = Lines<kCount>::of(own, keys<kCount>()[turn.next()]).word;
      return word.fetch_add(1, std::memory_order_acq_rel) != 0;
    };
  });
}

template <std::uint64_t kCount, bool kApart>
Result lines_32(const Amount& amount) {
  using Line = typename Lines<kCount>::Line;
  auto& all = Lines<kCount>::made();
  return together(amount, 2, [&](unsigned thread) {
    auto& own = kApart && thread == 1 ? all.second : all.first;
    return [&own, turn = Turn(kCount, thread * kCount / 2), next = kAtOnce,
            asked = std::array<Line*, kAtOnce>()]() mutable {
      if (next == kAtOnce) {
        for (auto& line : asked) {
          line = &Lines<kCount>::of(own, keys<kCount>()[turn.next()]);
          __builtin_prefetch(line, 1);
        }
        next = 0;
      }
      return asked[next++]->word.fetch_add(1, std::memory_order_acq_rel) != 0;
    };
  });
}

template <std::uint64_t kCount>
void add(std::vector<Workload>& all, const std::string& name) {
  all.push_back({"shared." + name, decisions<kCount, false>});
  all.push_back({"shared." + name + ".apart", decisions<kCount, true>});
  all.push_back({"shared." + name + ".32", decisions_32<kCount, false>});
  all.push_back({"shared." + name + ".32.apart", decisions_32<kCount, true>});
  all.push_back({"shared." + name + ".lines", lines<kCount, false>});
  all.push_back({"shared." + name + ".lines.apart", lines<kCount, true>});
  all.push_back({"shared." + name + ".lines.32", lines_32<kCount, false>});
  all.push_back({"shared." + name + ".lines.32.apart", lines_32<kCount, true>});
}

}  // namespace

std::vector<Workload> shared_workloads() {
  std::vector<Workload> all;
  add<100'000>(all, "100k");
  add<1'000'000>(all, "1m");
  add<10'000'000>(all, "10m");
  return all;
}

}  // namespace sluice::bench
