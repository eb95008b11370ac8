#include "cli/bench.h"

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/duration.h"
#include "base/log.h"
#include "base/result.h"
#include "base/suggest.h"
#include "cli/bench_report.h"
#include "cli/progress_line.h"
#include "config/address.h"
#include "load/connection_lane.h"
#include "load/generator.h"
#include "load/library_lane.h"
#include "load/subject.h"
#include "policy/policy.h"
#include "store/redis/exactness.h"

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

constexpr int kDone = 0;
constexpr int kError = 1;
constexpr int kExcess = 2;

constexpr std::uint64_t kMostConnections = 10'000;
constexpr std::uint64_t kMostInFlight = 100'000;
constexpr double kMostRate = 1e8;
constexpr std::uint64_t kMostOfACount = 1'000'000'000;
constexpr std::uint64_t kMostGrpcCost = UINT32_MAX;

struct Target {
  enum class Kind : std::uint8_t { grpc, http, memory, redis };
  Kind kind = Kind::grpc;
  std::string text;
  std::string host;
  std::string port;

  [[nodiscard]] bool is_here() const { return kind == Kind::memory || kind == Kind::redis; }
};

// All that was given, read.
struct Plan {
  std::vector<Target> targets;
  load::GeneratorOptions load;
  std::size_t connections = 4;
  std::size_t in_flight = 16;
  std::chrono::nanoseconds timeout = 20ms;
  std::uint64_t seed = 1;
  load::Allowance allowance;
  std::shared_ptr<const policy::Policy> policy;
  std::string policy_text;
};

Result<Target> parse_target(const std::string& text) {
  Target target;
  target.text = text;
  if (text == "memory") {
    target.kind = Target::Kind::memory;
    return target;
  }
  if (text.starts_with("unix://") || (text.starts_with("redis") && text.find("://") != std::string::npos)) {
    target.kind = Target::Kind::redis;
    return target;
  }
  constexpr std::string_view grpc = "grpc://";
  constexpr std::string_view http = "http://";
  std::string_view rest = text;
  if (rest.starts_with(http)) {
    target.kind = Target::Kind::http;
    rest.remove_prefix(http.size());
  } else if (rest.starts_with(grpc)) {
    rest.remove_prefix(grpc.size());
  } else {
    return Error{"--target: expected grpc://HOST:PORT, http://HOST:PORT, memory, redis…://… or unix://…, found '" +
                 text + "'"};
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const auto address = config::parse_address(rest);
  if (!address || address->off || address->host.empty() || address->port == 0) {
    return Error{"--target: expected a host and a port after the scheme, found '" + text + "'"};
  }
  target.host = address->host;
  target.port = std::to_string(address->port);
  return target;
}

template <typename T>
bool reads_as(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

// Reads options into a plan; the first mistake stays.
class Reader {
 public:
  explicit Reader(const BenchOptions& options) : options_(options) {}

  [[nodiscard]] std::optional<Error> read(Plan& plan) {
    read_targets(plan);
    const bool is_http = !plan.targets.empty() && plan.targets.front().kind == Target::Kind::http;
    if (is_http) {
      plan.connections = 64;
      plan.in_flight = 1;
    }
    plan.load.rate = rate();
    plan.load.cost = number("--cost", options_.cost, 0, 1'000'000'000'000'000, 1);
    plan.load.duration = duration("--duration", options_.duration, 10s);
    if (plan.load.duration.count() == 0) fail("--duration must be greater than 0");
    plan.connections = number("--connections", options_.connections, 1, kMostConnections, plan.connections);
    plan.in_flight = number("--in-flight", options_.in_flight, 1, kMostInFlight, plan.in_flight);
    plan.timeout = duration("--timeout", options_.timeout, plan.timeout);
    plan.seed = number("--seed", options_.seed, 0, UINT64_MAX, plan.seed);
    plan.allowance.restarts = number("--restarts", options_.restarts, 0, kMostOfACount, 0);
    plan.allowance.evictions = number("--evictions", options_.evictions, 0, kMostOfACount, 0);
    plan.allowance.nodes = number("--nodes", options_.nodes, 1, kMostOfACount, plan.targets.size());
    plan.allowance.outage = duration("--outage", options_.outage, 0s);
    plan.allowance.slack = duration("--clock-slack", options_.clock_slack, 10ms);
    if (options_.descriptors.empty()) fail("no descriptor: name what to ask for, such as user={zipf:1.1:100000}");
    const bool has_grpc =
        std::ranges::any_of(plan.targets, [](const Target& t) { return t.kind == Target::Kind::grpc; });
    if (has_grpc && plan.load.cost > kMostGrpcCost) fail("--cost must be at most 4294967295 over gRPC");
    if (plan.connections < plan.targets.size()) plan.connections = plan.targets.size();
    return problem_;
  }

 private:
  void fail(std::string message) {
    if (!problem_) problem_ = Error{std::move(message)};
  }
  void read_targets(Plan& plan) {
    std::vector<std::string> texts = options_.targets;
    if (texts.empty()) texts.emplace_back("grpc://127.0.0.1:8081");
    for (const std::string& text : texts) {
      auto target = parse_target(text);
      if (!target) {
        fail(target.error().message);
        return;
      }
      plan.targets.push_back(*std::move(target));
    }
    const bool is_here = std::ranges::any_of(plan.targets, &Target::is_here);
    if (is_here && plan.targets.size() > 1)
      fail("--target: memory and Redis stand alone; several daemons may be named");
    if (is_here && options_.policy.empty() && options_.limit.empty()) {
      fail("no policy: in process, name one with --policy, or a limit with --limit");
    }
    if (!options_.policy.empty() && !options_.limit.empty()) fail("--policy and --limit are both given; one is enough");
  }
  double rate() {
    if (options_.rate.empty() || options_.rate == "max") return 0;
    double value = 0;
    if (!reads_as(options_.rate, value) || !(value > 0 && value <= kMostRate)) {
      fail("--rate: expected max or a number of requests a second up to 100000000, found '" + options_.rate + "'");
    }
    return value;
  }
  std::uint64_t number(std::string_view name, const std::string& text, std::uint64_t least, std::uint64_t most,
                       std::uint64_t usual) {
    if (text.empty()) return usual;
    std::uint64_t value = 0;
    if (!reads_as(text, value) || value < least || value > most) {
      fail(std::string(name) + ": expected a whole number from " + std::to_string(least) + " to " +
           std::to_string(most) + ", found '" + text + "'");
      return usual;
    }
    return value;
  }
  std::chrono::nanoseconds duration(std::string_view name, const std::string& text, std::chrono::nanoseconds usual) {
    if (text.empty()) return usual;
    const auto value = parse_duration(text);
    if (!value) {
      fail(std::string(name) + ": " + value.error().message);
      return usual;
    }
    return *value;
  }

  const BenchOptions& options_;
  std::optional<Error> problem_;
};

// The policy that is checked against, and in process asked.
std::optional<Error> load_policy(const BenchOptions& options, const load::Traffic& traffic, Plan& plan) {
  const std::string domain = options.domain.empty() ? "bench" : options.domain;
  if (options.policy.empty() && options.limit.empty()) {
    if (options.domain.empty()) return Error{"no domain: name it with --domain, or the daemon's policy with --policy"};
    plan.load.domain = options.domain;
    return std::nullopt;
  }
  policy::LoadOptions load_options;
  if (plan.targets.front().kind == Target::Kind::redis) load_options.refuse_limit = store::redis::inexact_in_redis;
  policy::Loaded loaded;
  if (options.policy.empty()) {
    plan.policy_text = load::policy_text(domain, traffic.shape(), options.limit);
    const policy::SourceText text{.name = "--limit", .text = plan.policy_text};
    loaded = policy::load_texts({&text, 1}, load_options);
  } else {
    const std::vector<std::filesystem::path> paths(options.policy.begin(), options.policy.end());
    loaded = policy::load(paths, load_options);
  }
  if (loaded.policy == nullptr) {
    std::string problems;
    for (const policy::Finding& finding : loaded.findings) {
      problems += (problems.empty() ? "" : "\n") + finding.to_string();
    }
    return Error{problems};
  }
  const std::vector<std::string_view> names = loaded.policy->domain_names();
  plan.load.domain = options.domain.empty() && names.size() == 1 ? std::string(names.front()) : options.domain;
  if (plan.load.domain.empty()) return Error{"the policy has several domains; name one with --domain"};
  if (loaded.policy->find_domain(plan.load.domain) == nullptr) {
    const std::string_view meant = nearest(plan.load.domain, names);
    return Error{"the policy has no domain '" + plan.load.domain + "'" +
                 (meant.empty() ? "" : "; did you mean '" + std::string(meant) + "'?")};
  }
  plan.policy = std::move(loaded.policy);
  return std::nullopt;
}

// Tells how it goes: a bar on a terminal, else a line a second.
class Progress {
 public:
  Progress(boost::asio::io_context& io, const load::Generator& generator, const Plan& plan, bool is_quiet)
      : generator_(generator), plan_(plan), is_quiet_(is_quiet), timer_(io) {}

  void start() {
    if (is_quiet_) return;
    timer_.expires_after(line_.is_terminal() ? 200ms : 1'000ms);
    timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      if (generator_.has_begun()) tell();
      start();
    });
  }
  void stop() {
    timer_.cancel();
    line_.clear();
  }

 private:
  void tell() {
    const double now = std::chrono::duration<double>(generator_.elapsed()).count();
    const load::Totals& totals = generator_.totals();
    const std::uint64_t answered = totals.latency.count();
    const double rate = now > at_ ? static_cast<double>(answered - answered_) / (now - at_) : 0;
    std::string line = progress_line(totals, now, rate);
    if (line_.is_terminal()) {
      constexpr int width = 24;
      const double length = std::chrono::duration<double>(plan_.load.duration).count();
      const int filled = std::clamp(static_cast<int>(width * now / length), 0, width);
      line = "[" + std::string(static_cast<std::size_t>(filled), '#') +
             std::string(static_cast<std::size_t>(width - filled), ' ') + "] " + line;
    }
    line_.show(line);
    at_ = now;
    answered_ = answered;
  }

  const load::Generator& generator_;
  const Plan& plan_;
  const bool is_quiet_;
  ProgressLine line_;
  boost::asio::steady_timer timer_;
  double at_ = 0;
  std::uint64_t answered_ = 0;
};

std::string names_of(const std::vector<Target>& targets) {
  std::string names;
  for (const Target& target : targets) names += (names.empty() ? "" : ", ") + target.text;
  return names;
}

std::unique_ptr<Limiter> make_limiter(const BenchOptions& options, const Plan& plan) {
  if (!plan.targets.front().is_here()) return nullptr;
  LimiterOptions made{.policy_paths = options.policy, .policy_text = plan.policy_text};
  if (plan.targets.front().kind == Target::Kind::redis) made.redis_url = plan.targets.front().text;
  made.redis_timeout = plan.timeout;
  return std::make_unique<Limiter>(made);
}

void add_lanes(boost::asio::io_context& io, const Plan& plan, Limiter* limiter, load::Generator& generator) {
  if (limiter != nullptr) {
    generator.add(std::make_unique<load::LibraryLane>(io, generator.owner(), *limiter,
                                                      plan.targets.front().kind == Target::Kind::redis,
                                                      plan.connections * plan.in_flight));
    return;
  }
  for (std::size_t i = 0; i < plan.connections; ++i) {
    const Target& target = plan.targets[i % plan.targets.size()];
    const auto kind =
        target.kind == Target::Kind::http ? load::ConnectionLane::Kind::http : load::ConnectionLane::Kind::grpc;
    generator.add(
        std::make_unique<load::ConnectionLane>(io, generator.owner(), kind, target.host, target.port, plan.in_flight));
  }
}

// Why the load has shown nothing; empty: it has.
std::string failure_of(const load::Totals& totals, const Plan& plan) {
  const std::uint64_t admitted = totals.admitted + totals.admitted_local + totals.admitted_blind;
  if (admitted + totals.denied == 0) {
    if (totals.asked == 0) return "nothing was asked: the load ended before the first request";
    if (totals.denied_blind > 0) return "the store did not answer once: all was denied by on_store_failure: deny";
    const auto most = std::ranges::max_element(totals.errors, {}, [](const auto& error) { return error.second; });
    return "no request was answered" + (most == totals.errors.end() ? "" : ": " + most->first);
  }
  if (admitted > 0 && totals.named_limit == 0) {
    return "no answer names a limit: is domain '" + plan.load.domain + "' with these descriptors in the " +
           (plan.targets.front().is_here() ? "policy?" : "daemon's policy?");
  }
  return {};
}

int run(const BenchOptions& options, const Plan& plan, load::Traffic& traffic, std::ostream& out, std::ostream& err) {
  // An answer after its event loop has gone would be the limiter's thread's to tell nobody.
  boost::asio::io_context io{1};
  const std::unique_ptr<Limiter> limiter = make_limiter(options, plan);
  load::Checker checker;
  std::optional<load::Subject> subject;
  if (plan.policy != nullptr && !options.no_check) subject.emplace(plan.policy, plan.load.domain);
  load::Generator generator(io, plan.load, traffic, subject ? &checker : nullptr,
                            [&](const load::Descriptors& descriptors, std::vector<load::Checker::KeyId>& keys) {
                              subject->find(descriptors, checker, keys);
                            });
  add_lanes(io, plan, limiter.get(), generator);

  bool interrupted = false;
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  const auto on_signal = [&](boost::system::error_code error, int) {
    if (error) return;
    interrupted = true;
    generator.stop();
    signals.async_wait([&](boost::system::error_code again, int) {
      if (!again) generator.stop();
    });
  };
  signals.async_wait(on_signal);
  Progress progress(io, generator, plan, options.quiet);
  progress.start();
  const auto problem = generator.run();
  progress.stop();
  signals.cancel();
  if (problem) {
    err << "sluice bench: " << problem->message << (limiter == nullptr ? "; is a daemon there?" : "") << '\n';
    return kError;
  }

  const load::Totals& totals = generator.totals();
  BenchReport report;
  report.target = names_of(plan.targets);
  report.rate = plan.load.rate;
  report.totals = &totals;
  if (interrupted) report.notes.emplace_back("stopped by a signal: this is what was until then");
  int code = kDone;
  const std::string reason = failure_of(totals, plan);
  if (!reason.empty()) code = kError;
  if (!subject) {
    report.unchecked =
        options.no_check ? "--no-check" : "name the daemon's policy with --policy, or its limit with --limit";
  } else if (checker.keys() == 0) {
    report.unchecked = "no limit of the policy enforces these descriptors";
  } else if (!reason.empty()) {
    report.unchecked = reason;
  } else {
    report.check = checker.report(plan.allowance);
    if (!report.check->is_within()) code = kExcess;
  }
  // Told on standard error, too, where reasons belong; in JSON for those that read nothing else.
  if (!reason.empty() && options.json) report.notes.push_back(reason);
  out << (options.json ? to_json(report) : to_table(report)) << std::flush;
  if (!reason.empty()) err << "sluice bench: " << reason << '\n';
  if (code == kExcess) err << "sluice bench: more was admitted than the limits allow\n";
  return code;
}

}  // namespace

int bench(const BenchOptions& options, std::ostream& out, std::ostream& err) {
  const auto fail = [&](const std::string& message) {
    err << "sluice bench: " << message << '\n';
    return kError;
  };
  Plan plan;
  if (const auto problem = Reader(options).read(plan)) return fail(problem->message);
  auto traffic = load::Traffic::parse(options.descriptors, plan.seed);
  if (!traffic) return fail(traffic.error().message);
  if (const auto problem = load_policy(options, *traffic, plan)) return fail(problem->message);
  log::configure(log::Level::warn, log::Format::text);
  try {
    return run(options, plan, *traffic, out, err);
  } catch (const std::invalid_argument& problem) {
    return fail(problem.what());
  }
}

}  // namespace sluice::cli
