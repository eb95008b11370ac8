#include "server/policy_keeper.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "metrics/text_format.h"
#include "policy/public_text.h"

namespace sluice::server {
namespace {

constexpr std::chrono::seconds kRetireAfter{1};
constexpr int kNice = 10;  // a tenth of a processor that others want whole, too

/// One line that stands for all errors, for whoever may ask; the log has them whole.
std::string reason_of(const std::vector<policy::Finding>& findings) {
  const auto first = std::ranges::find_if(findings, &policy::Finding::is_error);
  if (first == findings.end()) return "the policy cannot be loaded";
  const auto more = std::ranges::count_if(findings, &policy::Finding::is_error) - 1;
  return policy::public_text(*first) + (more == 0 ? "" : " (and " + std::to_string(more) + " more)");
}

}  // namespace

PolicyKeeper::PolicyKeeper(boost::asio::io_context& io, PolicySources sources, policy::SnapshotHolder& policies,
                           metrics::Registry& registry, metrics::Shard& metrics, std::function<void()> in_force)
    : sources_(std::move(sources)),
      policies_(policies),
      metrics_(metrics),
      in_force_(std::move(in_force)),
      watch_(io, sources_.paths, [this] { read_again(false); }),
      io_(io),
      retire_timer_(io) {
  expose(registry);
  // Reading a policy is in no hurry; the threads that decide have the processors first. Linux has priorities by thread.
  boost::asio::post(thread_, [] { (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice); });
}

// NOLINTNEXTLINE(bugprone-exception-escape): to stop cancels timers, which does not throw in practice
PolicyKeeper::~PolicyKeeper() { stop(); }

void PolicyKeeper::expose(metrics::Registry& registry) {
  registry.add_families([this](metrics::TextFormat& text) {
    const std::string refusal = state_.refusal();
    text.family("sluice_policy_refused", "gauge",
                "1: the policy's files, as they are now, were refused, and what was in force before still is.");
    text.sample({}, std::uint64_t{refusal.empty() ? 0U : 1U});
    text.family("sluice_policy_refusal_info", "gauge", "Why they were refused; no sample: they were not.");
    if (!refusal.empty()) text.sample({{"reason", refusal}}, std::uint64_t{1});
    text.family("sluice_policy_loaded_timestamp_seconds", "gauge", "When the policy in force was loaded.");
    text.sample({}, std::chrono::duration<double>(state_.loaded_at().time_since_epoch()).count());
  });
}

policy::SourceFiles PolicyKeeper::read() const {
  return sources_.read ? sources_.read() : policy::read_files(sources_.paths);
}

std::vector<std::string> PolicyKeeper::load_first() {
  const policy::SourceFiles files = read();
  fingerprint_ = files.fingerprint();
  policy::Loaded loaded = policy::load(files, sources_.options);
  if (!loaded.policy) {
    std::vector<std::string> problems;
    for (const policy::Finding& finding : loaded.findings) {
      if (finding.is_error()) {
        problems.push_back(finding.to_string());
      } else {
        log::warn(finding.to_string());
      }
    }
    return problems;
  }
  put_in_force(std::move(loaded));
  return {};
}

void PolicyKeeper::start() {
  if (!sources_.watch) return;
  watch_.start();
  // What changed since it was read, and before it was watched.
  read_again(false);
}

void PolicyKeeper::stop() {
  stopped_ = true;
  watch_.stop();
  retire_timer_.cancel();
  thread_.join();
}

void PolicyKeeper::read_again(bool forced) {
  if (stopped_) return;
  forced_ = forced_ || forced;
  if (reading_) {
    read_again_ = true;
    return;
  }
  reading_ = true;
  if (sources_.watch) watch_.refresh();
  boost::asio::post(thread_, [this, known = std::exchange(forced_, false) ? 0 : fingerprint_] {
    const policy::SourceFiles files = read();
    Attempt attempt{.fingerprint = files.fingerprint(), .loaded = {}};
    if (attempt.fingerprint != known) attempt.loaded = policy::load(files, sources_.options);
    boost::asio::post(io_, [this, attempt = std::move(attempt)]() mutable { finish(std::move(attempt)); });
  });
}

void PolicyKeeper::finish(Attempt attempt) {
  reading_ = false;
  if (stopped_) return;
  fingerprint_ = attempt.fingerprint;
  if (attempt.loaded && attempt.loaded->policy) {
    const bool is_first = policies_.get() == nullptr;
    put_in_force(*std::move(attempt.loaded));
    if (!is_first) metrics_.add(metrics::Counter::policy_reloads);
    log::info("policy loaded again");
  } else if (attempt.loaded) {
    metrics_.add(metrics::Counter::policy_reloads_refused);
    for (const policy::Finding& finding : attempt.loaded->findings) {
      log::write(finding.is_error() ? log::Level::error : log::Level::warn, finding.to_string());
    }
    log::error("the policy was not loaded; the old one stays in force");
    state_.refused(reason_of(attempt.loaded->findings));
  }
  if (std::exchange(read_again_, false)) read_again(false);
}

void PolicyKeeper::put_in_force(policy::Loaded loaded) {
  for (const policy::Finding& finding : loaded.findings) log::warn(finding.to_string());
  state_.loaded(std::chrono::system_clock::now());
  if (auto before = policies_.set(std::move(loaded.policy))) {
    retired_.push_back(std::move(before));
    retire_after_ = kRetireAfter;
    take_apart();
  }
  in_force_();
}

/// Those that nobody uses any more, on the other thread. Threads that are idle keep theirs until their next request.
void PolicyKeeper::take_apart() {
  const auto in_use =
      std::partition(retired_.begin(), retired_.end(), [](const auto& one) { return one.use_count() > 1; });
  std::vector<std::shared_ptr<const policy::Policy>> unused(std::make_move_iterator(in_use),
                                                            std::make_move_iterator(retired_.end()));
  retired_.erase(in_use, retired_.end());
  if (!unused.empty()) boost::asio::post(thread_, [unused = std::move(unused)]() mutable { unused.clear(); });
  if (retired_.empty()) return;
  retire_timer_.expires_after(retire_after_);
  retire_after_ *= 2;
  retire_timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) take_apart();
  });
}

}  // namespace sluice::server
