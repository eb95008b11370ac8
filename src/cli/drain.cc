#include "cli/drain.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/log.h"
#include "base/suggest.h"
#include "config/redis_options.h"
#include "policy/policy.h"
#include "queue/drain_runner.h"
#include "queue/exec_deliverer.h"
#include "queue/http_deliverer.h"
#include "queue/line_deliverer.h"
#include "queue/make_broker.h"
#include "store/redis/exactness.h"

namespace sluice::cli {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kCheckTimeout = std::chrono::seconds(5);
constexpr std::size_t kMostTickets = 1'000'000;
constexpr std::uint64_t kMostInFlight = 10'000;
constexpr std::uint64_t kMostAttempts = 1'000;

/// A mistake of the caller's, for `err`.
struct Refusal {
  std::string message;
};

nanoseconds duration_of(const char* flag, const std::string& text) {
  const auto duration = parse_duration(text);
  if (!duration) throw Refusal{std::string(flag) + ": " + duration.error().message};
  if (*duration < std::chrono::milliseconds(1) || *duration > std::chrono::hours(1)) {
    throw Refusal{std::string(flag) + ": expected 1ms to 1h, found '" + text + "'"};
  }
  return *duration;
}

std::uint64_t number_of(const char* flag, std::uint64_t number, std::uint64_t most) {
  if (number >= 1 && number <= most) return number;
  throw Refusal{std::string(flag) + ": expected 1 to " + std::to_string(most) + ", found " + std::to_string(number)};
}

const config::QueueSettings& find_queue(const config::Settings& settings, const std::string& name) {
  const auto found = std::ranges::find(settings.queues, name, &config::QueueSettings::name);
  if (found == settings.queues.end()) {
    std::vector<std::string_view> names;
    names.reserve(settings.queues.size());
    for (const config::QueueSettings& queue : settings.queues) names.push_back(queue.name);
    const std::string_view meant = nearest(name, names);
    std::string help = names.empty() ? "; the server file (--config) has no queues" : "";
    if (!meant.empty()) help = "; did you mean '" + std::string(meant) + "'?";
    throw Refusal{"--queue: there is no queue '" + name + "'" + help};
  }
  if (found->kind == config::QueueSettings::Kind::memory) {
    throw Refusal{"--queue: '" + name + "' is in the memory of the daemon, which drains it itself"};
  }
  return *found;
}

std::shared_ptr<const policy::Policy> load_policy(const config::Settings& settings) {
  if (settings.policy.empty()) throw Refusal{"no policy: name a file or directory with --policy"};
  policy::LoadOptions options;
  if (!settings.redis_url.empty()) options.refuse_limit = store::redis::inexact_in_redis;
  options.queues.emplace();
  for (const config::QueueSettings& queue : settings.queues) options.queues->push_back(queue.name);
  const std::vector<std::filesystem::path> paths(settings.policy.begin(), settings.policy.end());
  policy::Loaded loaded = policy::load(paths, options);
  if (loaded.policy != nullptr) return loaded.policy;
  std::string problems;
  for (const policy::Finding& finding : loaded.findings) {
    if (!finding.is_error()) continue;
    if (!problems.empty()) problems += '\n';
    problems += finding.to_string();
  }
  throw Refusal{problems};
}

using MakeDeliverer = std::function<std::unique_ptr<queue::Deliverer>(boost::asio::io_context& io)>;

MakeDeliverer make_deliverer(const DrainOptions& options) {
  const int ways = static_cast<int>(!options.deliver.empty()) + static_cast<int>(!options.exec.empty()) +
                   static_cast<int>(options.to_stdout);
  if (ways != 1) throw Refusal{"give one of --deliver URL, --exec COMMAND and --stdout"};
  const nanoseconds timeout = duration_of("--timeout", options.timeout);
  if (!options.ca.empty() && options.deliver.empty()) throw Refusal{"--ca: only for --deliver https://…"};
  if (options.to_stdout) {
    return [](boost::asio::io_context& /*io*/) { return std::make_unique<queue::LineDeliverer>(STDOUT_FILENO); };
  }
  if (!options.exec.empty()) {
    return [command = options.exec, timeout](boost::asio::io_context& io) {
      return std::make_unique<queue::ExecDeliverer>(io, command, timeout);
    };
  }
  auto upstream = queue::parse_upstream(options.deliver);
  if (!upstream) throw Refusal{"--deliver: " + upstream.error().message};
  if (!options.ca.empty() && !upstream->is_over_tls) throw Refusal{"--ca: only for --deliver https://…"};
  queue::TrustPtr trust;
  if (upstream->is_over_tls) {
    auto made = queue::make_trust(options.ca);
    if (!made) throw Refusal{"--ca: " + made.error().message};
    trust = *std::move(made);
  }
  return [upstream = *upstream, trust, timeout](boost::asio::io_context& io) {
    return queue::make_http_deliverer(io, upstream, trust, timeout);
  };
}

std::unique_ptr<queue::Tickets> make_tickets(const config::Settings& settings) {
  if (settings.redis_url.empty()) {
    log::warn("without store.redis.url this drainer has counters and tickets of its own: run one drainer only");
    return queue::make_memory_tickets(kMostTickets);
  }
  auto tickets = queue::make_redis_tickets(queue::tickets_options_of(config::redis_options(settings, kCheckTimeout)));
  if (!tickets) throw Refusal{"store.redis.url: " + tickets.error().message};
  return *std::move(tickets);
}

void log_counts(std::string_view text, const queue::DrainerCounts& counts) {
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  log::info(text, {{"delivered", number(counts.report.delivered)},
                   {"duplicates", number(counts.report.duplicates)},
                   {"retries", number(counts.retries)},
                   {"dead", number(counts.report.dead)},
                   {"expired", number(counts.report.expired)},
                   {"cancelled", number(counts.cancelled)},
                   {"already_done", number(counts.already)},
                   {"foreign", number(counts.report.foreign)},
                   {"waiting", number(counts.waiting)},
                   {"in_flight", number(counts.in_flight)}});
}

/// Logs the counts now and then.
class Reporter {
 public:
  Reporter(queue::DrainRunner& runner, nanoseconds interval)
      : runner_(runner), interval_(interval), timer_(runner.io()) {}
  void start() {
    if (interval_.count() == 0) return;
    timer_.expires_after(interval_);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      log_counts("draining", runner_.counts());
      start();
    });
  }

 private:
  queue::DrainRunner& runner_;
  const nanoseconds interval_;
  boost::asio::steady_timer timer_;
};

/// Loads the policy anew on SIGHUP. A mistake in it leaves the old one in force.
class Reloader {
 public:
  Reloader(boost::asio::io_context& io, const config::Settings& settings, policy::SnapshotHolder& policies)
      : settings_(settings), policies_(policies), signals_(io, SIGHUP) {}
  void start() {
    signals_.async_wait([this](const boost::system::error_code& error, int /*signal*/) {
      if (error) return;
      try {
        policies_.set(load_policy(settings_));
        log::info("policy loaded anew");
      } catch (const Refusal& refusal) {
        log::warn("the policy has mistakes, the old one stays in force", {{"detail", refusal.message}});
      }
      start();
    });
  }

 private:
  const config::Settings& settings_;
  policy::SnapshotHolder& policies_;
  boost::asio::signal_set signals_;
};

void run(const DrainOptions& options, const config::Settings& settings) {
  const config::QueueSettings& named = find_queue(settings, options.queue);
  policy::SnapshotHolder policies;
  const auto policy = load_policy(settings);
  policies.set(policy);
  queue::DrainSetup setup;
  setup.options.queue = named.name;
  setup.options.drainer = queue::new_ticket();
  setup.options.in_flight = number_of("--in-flight", options.in_flight, kMostInFlight);
  setup.options.attempts = static_cast<unsigned>(number_of("--attempts", options.attempts, kMostAttempts));
  setup.options.first_pause = duration_of("--pause", options.pause);
  setup.options.drain_timeout = settings.drain_timeout;
  setup.make_deliverer = make_deliverer(options);
  setup.policies = &policies;
  const nanoseconds interval = options.report.empty() ? nanoseconds(0) : duration_of("--report", options.report);
  config::QueueSettings fitted;
  queue::fit_to_broker(named, *policy, fitted, setup.options);
  const auto tickets = make_tickets(settings);
  auto broker = queue::make_broker(fitted);
  if (!broker) throw Refusal{broker.error().message};
  setup.tickets = tickets.get();
  setup.broker = broker->get();
  if (settings.redis_url.empty()) {
    setup.memory = std::make_shared<store::MemoryStore>(settings.memory_max_keys);
  } else {
    setup.redis = config::redis_options(settings, kCheckTimeout);
  }
  queue::DrainRunner runner(setup);
  boost::asio::signal_set signals(runner.io(), SIGTERM, SIGINT);
  std::function<void()> await = [&] {
    signals.async_wait([&](const boost::system::error_code& error, int /*signal*/) {
      if (error) return;
      log::info("stopping");
      runner.stop();
      signals.async_wait([](const boost::system::error_code& again, int /*signal*/) {
        if (!again) std::_Exit(1);
      });
    });
  };
  await();
  Reloader reloader(runner.io(), settings, policies);
  reloader.start();
  Reporter reporter(runner, interval);
  reporter.start();
  log::info("draining " + config::to_text(named));
  runner.run();
  log_counts("stopped", runner.counts());
  (*broker)->stop();
  if (!runner.fault().empty()) throw Refusal{"nothing can be delivered any more: " + runner.fault()};
}

}  // namespace

int drain(const DrainOptions& options, std::ostream& err) {
  const auto resolved = resolve_settings(options.settings, err);
  if (!resolved) return EXIT_FAILURE;
  log::configure(resolved->settings.log_level, resolved->settings.log_format);
  std::signal(SIGPIPE, SIG_IGN);
  try {
    run(options, resolved->settings);
    return EXIT_SUCCESS;
  } catch (const Refusal& refusal) {
    err << "sluice drain: " << refusal.message << '\n';
  } catch (const std::exception& problem) {
    err << "sluice drain: " << problem.what() << '\n';
  }
  return EXIT_FAILURE;
}

}  // namespace sluice::cli
