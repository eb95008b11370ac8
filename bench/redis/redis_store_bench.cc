// Checks against a Redis store, or bare calls of a script, with a number of them always in flight; one line of JSON.
//   redis_store_bench store URL KEYS IN_FLIGHT SECONDS
//   redis_store_bench bare URL KEYS SECONDS SCRIPT_FILE   (one blocking caller: what a round trip costs)
#include <hiredis/hiredis.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/redis_store.h"
#include "store/redis/url.h"

namespace {

using namespace sluice;                // NOLINT(google-build-using-namespace)
using namespace sluice::store;         // NOLINT(google-build-using-namespace)
using namespace sluice::store::redis;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::vector<std::string> make_keys(std::size_t count) {
  std::vector<std::string> keys;
  keys.reserve(count);
  for (std::size_t i = 0; i < count; ++i) keys.push_back("user-" + std::to_string(i));
  return keys;
}

struct Figures {
  std::vector<float> latencies;  // µs
  double seconds = 0;
  double cpu = 0;
  std::uint64_t failures = 0;
  std::uint64_t calls = 0;

  int print() {
    if (latencies.empty()) return 1;
    std::sort(latencies.begin(), latencies.end());
    const auto at = [&](double part) {
      return latencies[static_cast<std::size_t>(part * static_cast<double>(latencies.size() - 1))];
    };
    const auto count = static_cast<double>(latencies.size());
    std::printf(
        R"({"decisions": %zu, "per_second": %.0f, "cpu_us": %.3f, "p50_us": %.1f, "p99_us": %.1f, "failures": %llu, )"
        R"("calls": %llu})"
        "\n",
        latencies.size(), count / seconds, 1e6 * cpu / count, static_cast<double>(at(0.5)),
        static_cast<double>(at(0.99)), static_cast<unsigned long long>(failures),
        static_cast<unsigned long long>(calls));
    return failures == 0 ? 0 : 1;
  }
};

// Checks that are asked again as soon as they are answered.
class Load {
 public:
  Load(boost::asio::io_context& io, Store& store, std::size_t keys, std::size_t in_flight)
      : io_(io), store_(store), keys_(make_keys(keys)) {
    limit_.numbers = {.algorithm = Algorithm::token_bucket, .rate = 10, .burst = 100};
    limit_.identity = "bench/user;tb";
    limit_.id = 1;
    for (std::size_t i = 0; i < in_flight; ++i) callers_.push_back(std::make_unique<Caller>(*this));
  }

  Figures run(std::chrono::duration<double> length) {
    figures_.latencies.reserve(4'000'000);
    const auto begin = Clock::now();
    end_ = begin + std::chrono::duration_cast<Clock::duration>(length);
    const double cpu_before = cpu_seconds();
    for (const auto& caller : callers_) caller->ask();
    while (running_ > 0) io_.run_one();
    figures_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    figures_.cpu = cpu_seconds() - cpu_before;
    return std::move(figures_);
  }

 private:
  class Caller final : public Check {
   public:
    explicit Caller(Load& load) : load_(load) {
      charge_.limit = &load.limit_;
      charges = {&charge_, 1};
      decisions = {&decision_, 1};
    }
    void ask() {
      ++load_.running_;
      began_ = Clock::now();
      if (began_ >= load_.end_) {
        --load_.running_;
        return;
      }
      charge_.key = load_.keys_[load_.random_() % load_.keys_.size()];
      if (load_.store_.check(*this, Time{}) == Progress::answered) {
        ++load_.figures_.failures;
        --load_.running_;
      }
    }
    void complete() override {
      load_.figures_.failures += failure != Failure::none ? 1 : 0;
      load_.figures_.latencies.push_back(std::chrono::duration<float, std::micro>(Clock::now() - began_).count());
      --load_.running_;
      ask();
    }

   private:
    Load& load_;
    Charge charge_;
    Decision decision_;
    Clock::time_point began_;
  };

  boost::asio::io_context& io_;
  Store& store_;
  const std::vector<std::string> keys_;
  CountedLimit limit_;
  std::vector<std::unique_ptr<Caller>> callers_;
  std::minstd_rand random_{1};
  Clock::time_point end_;
  std::size_t running_ = 0;
  Figures figures_;
};

int run_store(const std::string& url, std::size_t keys, std::size_t in_flight, double seconds) {
  boost::asio::io_context io(1);
  metrics::Shard metrics;
  auto store = RedisStore::create(io, {.url = url, .timeout = std::chrono::seconds(5)}, metrics);
  if (!store) {
    std::fprintf(stderr, "%s\n", store.error().message.c_str());
    return 1;
  }
  while (!(*store)->ready()) io.run_one();
  Load load(io, **store, keys, in_flight);
  Figures figures = load.run(std::chrono::duration<double>(seconds));
  figures.calls = metrics.value(metrics::Counter::store_calls);
  return figures.print();
}

int run_bare(const std::string& url, std::size_t key_count, double seconds, const char* script_file) {
  const auto endpoint = parse_url(url);
  std::ifstream file(script_file);
  const std::string script((std::istreambuf_iterator<char>(file)), {});
  if (!endpoint || script.empty()) return 1;
  redisContext* context = redisConnect(endpoint->host.c_str(), endpoint->port);
  const Reply loaded(static_cast<redisReply*>(redisCommand(context, "SCRIPT LOAD %s", script.c_str())));
  const auto keys = make_keys(key_count);
  std::minstd_rand random(1);
  Figures figures;
  const auto begin = Clock::now();
  const double cpu_before = cpu_seconds();
  while (Clock::now() - begin < std::chrono::duration<double>(seconds)) {
    const auto asked = Clock::now();
    const Reply reply(static_cast<redisReply*>(
        redisCommand(context, "EVALSHA %s 1 bare:%s 10 100 1", loaded->str, keys[random() % keys.size()].c_str())));
    if (reply == nullptr || reply->type != REDIS_REPLY_ARRAY) ++figures.failures;
    figures.latencies.push_back(std::chrono::duration<float, std::micro>(Clock::now() - asked).count());
  }
  figures.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  figures.cpu = cpu_seconds() - cpu_before;
  redisFree(context);
  return figures.print();
}

}  // namespace

int main(int count, char** words) {
  const std::string_view mode = count > 1 ? words[1] : "";
  if (mode == "store" && count == 6) {
    return run_store(words[2], std::strtoull(words[3], nullptr, 10), std::strtoull(words[4], nullptr, 10),
                     std::strtod(words[5], nullptr));
  }
  if (mode == "bare" && count == 6) {
    return run_bare(words[2], std::strtoull(words[3], nullptr, 10), std::strtod(words[4], nullptr), words[5]);
  }
  std::fprintf(stderr,
               "usage: redis_store_bench store URL KEYS IN_FLIGHT SECONDS | bare URL KEYS SECONDS SCRIPT_FILE\n");
  return 2;
}
