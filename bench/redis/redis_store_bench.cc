// Measures a Redis store, and beside it bare calls of another script by hiredis. One line of JSON for each.
//   closed URL KEYS IN_FLIGHT WARM_SECONDS SECONDS [GROUPS]    a number of checks always in flight; of a cluster the
//                                                     URL names all masters, and keys may have so many hash tags
//   single URL KEYS SECONDS SCRIPT_FILE               one caller; bare: one that blocks. In turns of 50 ms
//   open URL KEYS RATE SECONDS SCRIPT_FILE            started at a fixed rate, whatever is answered; latency counts
//   from
//                                                     the planned start. In turns of 250 ms
#include <hiredis/hiredis.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/redis_store.h"
#include "store/redis/reply_reader.h"
#include "store/redis/resp_writer.h"
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

struct ContextDeleter {
  void operator()(redisContext* context) const { redisFree(context); }
};
using Context = std::unique_ptr<redisContext, ContextDeleter>;

std::vector<Context> connect_all(const std::string& url) {
  const auto target = parse_url(url);
  std::vector<Context> contexts;
  for (const Address& node : target ? target->nodes : std::vector<Address>()) {
    contexts.emplace_back(redisConnect(node.host.c_str(), node.port));
    if (contexts.back() == nullptr || contexts.back()->err != 0) {
      std::fprintf(stderr, "cannot connect to %s\n", node.to_text().c_str());
      std::exit(1);
    }
  }
  if (contexts.empty()) std::exit(1);
  return contexts;
}

Context connect(const std::string& url) { return std::move(connect_all(url).front()); }

// CPU time of the servers so far.
double redis_seconds(const std::vector<Context>& contexts) {
  double sum = 0;
  for (const Context& context : contexts) {
    const Reply reply(static_cast<redisReply*>(redisCommand(context.get(), "INFO cpu")));
    const std::string text(reply == nullptr ? "" : text_of(*reply));
    for (const char* field : {"used_cpu_user:", "used_cpu_sys:"}) {
      const std::size_t at = text.find(field);
      if (at != std::string::npos) sum += std::strtod(text.c_str() + at + std::string_view(field).size(), nullptr);
    }
  }
  return sum;
}

CountedLimit bench_limit() {
  CountedLimit limit;
  limit.numbers = {.algorithm = Algorithm::token_bucket, .rate = 10, .burst = 100};
  limit.identity = "bench/user;tb";
  limit.id = 1;
  return limit;
}

struct Figures {
  std::vector<float> latencies;  // µs
  double seconds = 0;
  double cpu = 0;
  double redis_cpu = 0;
  std::uint64_t failures = 0;
  std::uint64_t calls = 0;

  int print() {
    if (latencies.empty()) return 1;
    std::sort(latencies.begin(), latencies.end());
    const auto at = [&](double part) {
      return latencies[static_cast<std::size_t>(part * static_cast<double>(latencies.size() - 1))];
    };
    const auto count = static_cast<double>(latencies.size());
    std::printf(R"({"decisions": %zu, "per_second": %.0f, "cpu_us": %.3f, "redis_us": %.3f, "p50_us": %.1f, )"
                R"("p99_us": %.1f, "p999_us": %.1f, "failures": %llu, "calls": %llu})"
                "\n",
                latencies.size(), count / seconds, 1e6 * cpu / count, 1e6 * redis_cpu / count,
                static_cast<double>(at(0.5)), static_cast<double>(at(0.99)), static_cast<double>(at(0.999)),
                static_cast<unsigned long long>(failures), static_cast<unsigned long long>(calls));
    return failures == 0 ? 0 : 1;
  }
};

// Checks that are asked again as soon as they are answered.
class Load {
 public:
  Load(boost::asio::io_context& io, Store& store, std::size_t keys, std::size_t in_flight)
      : io_(io), store_(store), keys_(make_keys(keys)) {
    for (std::size_t i = 0; i < in_flight; ++i) callers_.push_back(std::make_unique<Caller>(*this));
  }

  Figures run(std::chrono::duration<double> length) {
    figures_ = {};
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
  const CountedLimit limit_ = bench_limit();
  std::vector<std::unique_ptr<Caller>> callers_;
  std::minstd_rand random_{1};
  Clock::time_point end_;
  std::size_t running_ = 0;
  Figures figures_;
};

// A store with its event loop, connected.
struct OpenStore {
  boost::asio::io_context io{1};
  metrics::Shard metrics;
  std::unique_ptr<RedisStore> store;

  explicit OpenStore(const std::string& url, std::uint32_t groups = 0) {
    RedisOptions options;
    options.url = url;
    options.timeout = std::chrono::seconds(5);
    options.cluster_groups = groups;
    auto made = RedisStore::create(io, options, metrics);
    if (!made) {
      std::fprintf(stderr, "%s\n", made.error().message.c_str());
      std::exit(1);
    }
    store = *std::move(made);
    while (!store->ready()) io.run_one();
  }
};

int run_closed(const std::string& url, std::size_t keys, std::size_t in_flight, double warm, double seconds,
               std::uint32_t groups) {
  OpenStore open(url, groups);
  const std::vector<Context> control = connect_all(url);
  Load load(open.io, *open.store, keys, in_flight);
  // Again, where not all servers of a cluster are connected yet.
  while (load.run(std::chrono::duration<double>(warm)).failures > 0) open.io.run_one();
  const std::uint64_t calls = open.metrics.value(metrics::Counter::store_calls);
  const double redis_before = redis_seconds(control);
  Figures figures = load.run(std::chrono::duration<double>(seconds));
  figures.redis_cpu = redis_seconds(control) - redis_before;
  figures.calls = open.metrics.value(metrics::Counter::store_calls) - calls;
  return figures.print();
}

// -- bare calls of a script
// ---------------------------------------------------------------------------------------------

class BareScript {
 public:
  BareScript(const std::string& url, std::size_t keys, const char* file)
      : context_(connect(url)), keys_(make_keys(keys)) {
    std::ifstream in(file);
    const std::string script((std::istreambuf_iterator<char>(in)), {});
    const Reply loaded(static_cast<redisReply*>(redisCommand(context_.get(), "SCRIPT LOAD %s", script.c_str())));
    if (loaded == nullptr || loaded->type != REDIS_REPLY_STRING) std::exit(1);
    sha1_ = text_of(*loaded);
  }
  void append() {
    command_.clear();
    append_command(command_, 7);
    for (const std::string_view word : {std::string_view("EVALSHA"), std::string_view(sha1_), std::string_view("1")}) {
      append_bulk(command_, word);
    }
    append_bulk(command_, "bare:" + keys_[random_() % keys_.size()]);
    for (const char* word : {"10", "100", "1"}) append_bulk(command_, word);
    redisAppendFormattedCommand(context_.get(), command_.data(), command_.size());
  }
  [[nodiscard]] redisContext& context() { return *context_; }

 private:
  Context context_;
  const std::vector<std::string> keys_;
  std::string sha1_;
  std::string command_;
  std::minstd_rand random_{1};
};

void add(Figures& sum, const Figures& part) {
  sum.latencies.insert(sum.latencies.end(), part.latencies.begin(), part.latencies.end());
  sum.seconds += part.seconds;
  sum.cpu += part.cpu;
  sum.failures += part.failures;
}

float microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<float, std::micro>(Clock::now() - begin).count();
}

Figures block(BareScript& bare, std::chrono::duration<double> length) {
  Figures figures;
  const auto begin = Clock::now();
  const double cpu_before = cpu_seconds();
  while (Clock::now() - begin < length) {
    const auto asked = Clock::now();
    bare.append();
    void* answer = nullptr;
    const bool is_answered = redisGetReply(&bare.context(), &answer) == REDIS_OK;
    const Reply reply(static_cast<redisReply*>(answer));
    if (!is_answered || reply->type != REDIS_REPLY_ARRAY) ++figures.failures;
    figures.latencies.push_back(microseconds_since(asked));
  }
  figures.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  figures.cpu = cpu_seconds() - cpu_before;
  return figures;
}

int print_both(Figures& store, Figures& bare) {
  const int first = store.print();
  return first + bare.print();
}

int run_single(const std::string& url, std::size_t keys, double seconds, const char* script_file) {
  constexpr std::chrono::duration<double> turn(0.05);
  OpenStore open(url);
  BareScript bare(url, keys, script_file);
  Load load(open.io, *open.store, keys, 1);
  Figures ours;
  Figures theirs;
  static_cast<void>(load.run(turn));
  static_cast<void>(block(bare, turn));
  const auto end = Clock::now() + std::chrono::duration<double>(2 * seconds);
  while (Clock::now() < end) {
    add(ours, load.run(turn));
    add(theirs, block(bare, turn));
  }
  return print_both(ours, theirs);
}

// -- at a fixed rate
// ----------------------------------------------------------------------------------------------------

// Starts calls at their times; a timer that fires late starts several.
class Metronome {
 public:
  /// `start` is told when the call should have started.
  Metronome(boost::asio::io_context& io, double rate, std::function<void(Clock::time_point)> start)
      : timer_(io),
        interval_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / rate))),
        start_(std::move(start)) {}
  void play(Clock::time_point end) {
    next_ = Clock::now();
    end_ = end;
    tick();
  }
  [[nodiscard]] bool is_over() const { return next_ >= end_; }

 private:
  void tick() {
    for (const auto now = Clock::now(); next_ <= now && !is_over(); next_ += interval_) start_(next_);
    if (is_over()) return;
    timer_.expires_at(next_);
    timer_.async_wait([this](boost::system::error_code) { tick(); });
  }

  boost::asio::steady_timer timer_;
  const Clock::duration interval_;
  const std::function<void(Clock::time_point)> start_;
  Clock::time_point next_;
  Clock::time_point end_;
};

class StoreCalls {
 public:
  StoreCalls(Store& store, std::size_t keys) : store_(store), keys_(make_keys(keys)) {}
  void start(Clock::time_point planned) {
    if (free_.empty()) {
      calls_.push_back(std::make_unique<Call>(*this));
      free_.push_back(calls_.back().get());
    }
    Call& call = *free_.back();
    free_.pop_back();
    ++pending_;
    call.ask(planned);
  }
  [[nodiscard]] bool is_idle() const { return pending_ == 0; }
  Figures figures;

 private:
  class Call final : public Check {
   public:
    explicit Call(StoreCalls& calls) : calls_(calls) {
      charge_.limit = &calls.limit_;
      charges = {&charge_, 1};
      decisions = {&decision_, 1};
    }
    void ask(Clock::time_point planned) {
      planned_ = planned;
      charge_.key = calls_.keys_[calls_.random_() % calls_.keys_.size()];
      if (calls_.store_.check(*this, Time{}) == Progress::answered) complete();
    }
    void complete() override {
      calls_.figures.failures += failure != Failure::none ? 1 : 0;
      calls_.figures.latencies.push_back(microseconds_since(planned_));
      --calls_.pending_;
      calls_.free_.push_back(this);
    }

   private:
    StoreCalls& calls_;
    Charge charge_;
    Decision decision_;
    Clock::time_point planned_;
  };

  Store& store_;
  const std::vector<std::string> keys_;
  const CountedLimit limit_ = bench_limit();
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<Call*> free_;
  std::minstd_rand random_{1};
  std::size_t pending_ = 0;
};

// One pipelined connection: each call leaves at once.
class BareCalls {
 public:
  BareCalls(boost::asio::io_context& io, BareScript& script)
      : script_(script), socket_(io, ::dup(script.context().fd)) {
    socket_.non_blocking(true);
  }
  void start(Clock::time_point planned) {
    script_.append();
    planned_.push_back(planned);
    int is_done = 0;
    while (is_done == 0) {
      if (redisBufferWrite(&script_.context(), &is_done) != REDIS_OK) std::exit(1);
    }
    if (planned_.size() == 1) wait();
  }
  [[nodiscard]] bool is_idle() const { return planned_.empty(); }
  Figures figures;

 private:
  void wait() {
    socket_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](boost::system::error_code) {
      if (redisBufferRead(&script_.context()) != REDIS_OK) std::exit(1);
      void* answer = nullptr;
      while (redisGetReplyFromReader(&script_.context(), &answer) == REDIS_OK && answer != nullptr) {
        const Reply reply(static_cast<redisReply*>(answer));
        if (reply->type != REDIS_REPLY_ARRAY) ++figures.failures;
        figures.latencies.push_back(microseconds_since(planned_.front()));
        planned_.pop_front();
      }
      if (!is_idle()) wait();
    });
  }

  BareScript& script_;
  boost::asio::posix::stream_descriptor socket_;
  std::deque<Clock::time_point> planned_;
};

template <typename Calls>
void play(boost::asio::io_context& io, double rate, Calls& calls) {
  constexpr auto turn = std::chrono::milliseconds(250);
  Metronome metronome(io, rate, [&](Clock::time_point planned) { calls.start(planned); });
  const auto begin = Clock::now();
  const double cpu_before = cpu_seconds();
  metronome.play(begin + turn);
  while (!metronome.is_over() || !calls.is_idle()) io.run_one();
  calls.figures.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
  calls.figures.cpu += cpu_seconds() - cpu_before;
}

int run_open(const std::string& url, std::size_t keys, double rate, double seconds, const char* script_file) {
  OpenStore open(url);
  BareScript script(url, keys, script_file);
  StoreCalls store(*open.store, keys);
  BareCalls bare(open.io, script);
  play(open.io, rate, store);
  play(open.io, rate, bare);
  store.figures = {};
  bare.figures = {};
  const auto end = Clock::now() + std::chrono::duration<double>(2 * seconds);
  while (Clock::now() < end) {
    play(open.io, rate, store);
    play(open.io, rate, bare);
  }
  return print_both(store.figures, bare.figures);
}

}  // namespace

int main(int count, char** words) {
  // Timers on time: the kernel may else be 50 µs late.
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  const std::string_view mode = count > 1 ? words[1] : "";
  const auto number = [&](int at) { return std::strtod(words[at], nullptr); };
  const auto size = [&](int at) { return static_cast<std::size_t>(std::strtoull(words[at], nullptr, 10)); };
  if (mode == "closed" && (count == 7 || count == 8)) {
    const auto groups = count == 8 ? static_cast<std::uint32_t>(size(7)) : 0U;
    return run_closed(words[2], size(3), size(4), number(5), number(6), groups);
  }
  if (mode == "single" && count == 6) return run_single(words[2], size(3), number(4), words[5]);
  if (mode == "open" && count == 7) return run_open(words[2], size(3), number(4), number(5), words[6]);
  std::fprintf(stderr,
               "usage: redis_store_bench closed URL KEYS IN_FLIGHT WARM_SECONDS SECONDS [GROUPS]\n"
               "       redis_store_bench single URL KEYS SECONDS SCRIPT_FILE\n"
               "       redis_store_bench open URL KEYS RATE SECONDS SCRIPT_FILE\n");
  return 2;
}
