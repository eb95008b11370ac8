// One decision in the memory store against find-and-increment in 256 × (mutex + std::unordered_map): the same keys in
// the same order, in turns; and the longest decision while the store grows to ten million keys. The last line is JSON;
// `ratio` is our time as a multiple of the map's, for the length of key where it is worst. `--smoke`: few keys, to see
// that it runs.
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/limit_ids.h"
#include "store/memory/memory_store.h"

namespace {

/// CPU time of this thread: the machine may have other work.
double cpu_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Keys of one length, one after the other, in the order they are used: as in a front, a key's bytes are at hand.
class Keys {
 public:
  Keys(std::size_t count, std::size_t length, std::mt19937_64& random) : length_(length), bytes_(count * length, '0') {
    constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuvwxyz";
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t at = 0; at < length; ++at) bytes_[i * length + at] = digits[random() % digits.size()];
    }
  }
  [[nodiscard]] std::size_t size() const { return bytes_.size() / length_; }
  [[nodiscard]] std::string_view operator[](std::size_t i) const { return {&bytes_[i * length_], length_}; }
  void shuffle(std::mt19937_64& random) {
    std::vector<std::size_t> order(size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::shuffle(order, random);
    std::string shuffled(bytes_.size(), '0');
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::memcpy(&shuffled[i * length_], &bytes_[order[i] * length_], length_);
    }
    bytes_ = std::move(shuffled);
  }

 private:
  std::size_t length_;
  std::string bytes_;
};

/// The peer. Each key is hashed once, and found without making a std::string of it.
class LockedMaps {
 public:
  std::uint64_t increment(std::string_view key) {
    const Hashed hashed{key, std::hash<std::string_view>{}(key)};
    Part& part = parts_[hashed.hash >> 56U];
    const std::scoped_lock lock(part.mutex);
    const auto found = part.counts.find(hashed);
    if (found != part.counts.end()) return ++found->second;
    part.counts.emplace(key, 1);
    return 1;
  }

 private:
  struct Hashed {
    std::string_view text;
    std::size_t hash;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const Hashed& key) const { return key.hash; }
    std::size_t operator()(const std::string& key) const { return std::hash<std::string_view>{}(key); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Hashed& a, const std::string& b) const { return a.text == b; }
    bool operator()(const std::string& a, const Hashed& b) const { return a == b.text; }
    bool operator()(const std::string& a, const std::string& b) const { return a == b; }
  };
  struct Part {
    std::mutex mutex;
    std::unordered_map<std::string, std::uint64_t, Hash, Equal> counts;
  };
  std::array<Part, 256> parts_;
};

class OneCharge final : public sluice::store::Check {
 public:
  OneCharge() {
    charges = {&charge, 1};
    decisions = {&decision, 1};
  }
  void complete() override {}
  sluice::store::Charge charge;
  sluice::Decision decision;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Row {
  std::size_t length = 0;
  double ours = 0;
  double map = 0;
  double ratio = 0;
  double bytes_beyond_key = 0;
};

Row measure(const sluice::store::CountedLimit& limit, std::size_t length, std::size_t count, int rounds) {
  std::mt19937_64 random(length);
  Keys keys(count, length, random);
  sluice::store::MemoryStore store;
  LockedMaps maps;
  OneCharge check;
  check.charge.limit = &limit;
  sluice::Time now{1'000'000'000'000, 1'767'225'600'000'000'000};
  std::uint64_t sink = 0;
  const auto decide = [&](std::string_view key) {
    check.charge.key = key;
    now.steady += 200;
    now.utc += 200;
    static_cast<void>(static_cast<sluice::store::Store&>(store).check(check, now));
    sink += check.decision.remaining;
  };
  for (std::size_t i = 0; i < count; ++i) {
    decide(keys[i]);
    sink += maps.increment(keys[i]);
  }
  Row row{.length = length};
  while (store.join_pages()) {  // as the daemon does, some each second
  }
  const sluice::store::MemoryStore::Figures figures = store.figures();
  row.bytes_beyond_key =
      static_cast<double>(figures.bytes) / static_cast<double>(figures.keys) - static_cast<double>(length);

  std::vector<double> ours;
  std::vector<double> theirs;
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    keys.shuffle(random);
    const double begin = cpu_nanoseconds();
    for (std::size_t i = 0; i < count; ++i) decide(keys[i]);
    const double between = cpu_nanoseconds();
    for (std::size_t i = 0; i < count; ++i) sink += maps.increment(keys[i]);
    const double end = cpu_nanoseconds();
    ours.push_back((between - begin) / static_cast<double>(count));
    theirs.push_back((end - between) / static_cast<double>(count));
    ratios.push_back(ours.back() / theirs.back());
  }
  row.ours = median(ours);
  row.map = median(theirs);
  row.ratio = median(ratios);
  if (sink == 0) std::puts("");  // so that nothing measured is left out
  return row;
}

/// The longest decision while the store grows to so many keys, in ms of CPU time; the kernel's work for new memory is
/// in it. Pages are joined between the decisions, by another thread in the daemon.
double longest_while_growing(const sluice::store::CountedLimit& limit, std::uint64_t count) {
  sluice::store::MemoryStore store(count / 4 * 5);
  OneCharge check;
  check.charge.limit = &limit;
  const sluice::Time now{1'000'000'000'000, 1'767'225'600'000'000'000};
  std::array<char, 20> key{};
  double longest = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(key.data(), &i, sizeof i);
    check.charge.key = {key.data(), key.size()};
    const double begin = cpu_nanoseconds();
    static_cast<void>(static_cast<sluice::store::Store&>(store).check(check, now));
    longest = std::max(longest, cpu_nanoseconds() - begin);
    if (i % 65'536 == 0) store.join_pages();
  }
  return longest / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  const bool smoke = argc > 1 && std::string_view(argv[1]) == "--smoke";
  const std::size_t count = smoke ? 10'000 : 1'000'000;
  const int rounds = smoke ? 3 : 7;

  sluice::store::CountedLimit limit;
  limit.numbers.algorithm = sluice::Algorithm::token_bucket;
  limit.numbers.rate = 100;
  limit.numbers.period = std::chrono::minutes(1);
  limit.numbers.burst = 1'000;
  limit.identity = "bench.user";
  limit.id = sluice::store::limit_id(limit.identity);

  double worst = 0;
  double most_bytes = 0;
  for (const std::size_t length : {12U, 20U, 36U}) {
    const Row row = measure(limit, length, count, rounds);
    std::printf("keys of %2zu bytes: %6.1f ns a decision, %6.1f ns a map's increment, ratio %.3f, key + %.1f bytes\n",
                row.length, row.ours, row.map, row.ratio, row.bytes_beyond_key);
    worst = std::max(worst, row.ratio);
    most_bytes = std::max(most_bytes, row.bytes_beyond_key);
  }
  std::vector<double> longest;
  for (int round = 0; round < 3; ++round) longest.push_back(longest_while_growing(limit, count * 10));
  const double longest_ms = median(longest);
  std::printf("growing to %zu keys: the longest decision took %.2f ms (of three times %.2f … %.2f)\n", count * 10,
              longest_ms, std::ranges::min(longest), std::ranges::max(longest));
  std::printf(R"({"ratio": %.4f, "keys": %zu, "bytes_beyond_key": %.1f, "longest_ms": %.3f})"
              "\n",
              worst, count, most_bytes, longest_ms);
  return 0;
}
