#include "metrics/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <string_view>
#include <utility>

#include "metrics/text_format.h"

namespace sluice::metrics {
namespace {

constexpr auto kCounters = static_cast<std::size_t>(Counter::count_);
constexpr auto kVerdicts = static_cast<std::size_t>(Verdict::count_);
constexpr std::array<std::string_view, kVerdicts> kVerdictNames = {"allowed", "denied", "shadow_denied", "near_limit"};

/// How a counter is exposed. Counters of one family stand together; its help is that of the first.
struct Exposed {
  Counter counter;
  std::string_view name;
  std::string_view label;  // empty: none
  std::string_view value;
  std::string_view help;
};

constexpr std::array<Exposed, kCounters> kExposed = {{
    {Counter::grpc_requests, "sluice_grpc_requests_total", "", "", "Calls over gRPC."},
    {Counter::grpc_errors, "sluice_grpc_errors_total", "", "", "Calls over gRPC answered by an error."},
    {Counter::http_requests, "sluice_http_requests_total", "", "", "Requests over HTTP."},
    {Counter::http_errors, "sluice_http_errors_total", "", "",
     "Requests over HTTP answered by an error, denials not counted."},
    {Counter::resp_commands, "sluice_resp_commands_total", "", "", "Commands over RESP."},
    {Counter::resp_errors, "sluice_resp_errors_total", "", "", "Commands over RESP answered by an error."},
    {Counter::connections_opened, "sluice_connections_opened_total", "", "", "Connections accepted."},
    {Counter::connections_closed, "sluice_connections_closed_total", "", "", "Connections that have ended."},
    {Counter::connections_refused, "sluice_connections_refused_total", "", "",
     "Connections closed at once because there were too many."},
    {Counter::protocol_errors, "sluice_protocol_errors_total", "", "",
     "Connections ended because the peer broke its protocol."},
    {Counter::tls_failures, "sluice_tls_handshake_failures_total", "", "",
     "Connections ended because hands were not shaken: no certificate that is accepted, no protocol in common, no "
     "time."},
    {Counter::tls_reloads, "sluice_tls_reloads_total", "result", "ok",
     "Times that certificates were read again; refused: they cannot be used and the old ones stay in force."},
    {Counter::tls_reloads_refused, "sluice_tls_reloads_total", "result", "refused", ""},
    {Counter::unknown_domain, "sluice_unknown_domain_requests_total", "", "",
     "Requests allowed because no policy has their domain."},
    {Counter::override_allowed, "sluice_override_decisions_total", "verdict", "allowed",
     "Verdicts of limits that requests brought themselves."},
    {Counter::override_denied, "sluice_override_decisions_total", "verdict", "denied", ""},
    {Counter::throttle_allowed, "sluice_throttle_decisions_total", "verdict", "allowed",
     "Decisions by numbers that a RESP command brought itself."},
    {Counter::throttle_denied, "sluice_throttle_decisions_total", "verdict", "denied", ""},
    {Counter::store_checks, "sluice_store_checks_total", "", "",
     "Requests put to the shared store; none while it is not asked after too many failures."},
    {Counter::store_calls, "sluice_store_calls_total", "", "",
     "Calls to the shared store: each carries the requests that came together."},
    {Counter::store_failures, "sluice_store_failures_total", "", "",
     "Requests put to the shared store that it failed to answer."},
    {Counter::store_timeouts, "sluice_store_timeouts_total", "", "",
     "Requests that the shared store did not answer in time."},
    {Counter::store_cached_denials, "sluice_store_cached_denials_total", "", "",
     "Requests denied without asking the shared store, which had just denied the same."},
    {Counter::store_evicted_keys, "sluice_store_evicted_keys_total", "", "",
     "Keys that the shared store was seen to drop for want of memory: limits that began anew, if they were Sluice's."},
    {Counter::store_splits, "sluice_store_split_checks_total", "", "",
     "Requests that took several steps, as their keys lie in different places of a cluster or behind a proxy."},
    {Counter::store_give_backs, "sluice_store_given_back_total", "", "",
     "Charges given back because another step of the same request was denied or failed."},
    {Counter::store_losses, "sluice_store_not_given_back_total", "", "",
     "Charges that should have been given back and could not be: lost until they are refilled or their window ends."},
    {Counter::store_redirects, "sluice_store_redirects_total", "", "",
     "Calls that a cluster's node has sent to another node, or to be tried again."},
    {Counter::store_unconfirmed, "sluice_store_unconfirmed_total", "", "",
     "Calls that fewer replicas than store.redis.wait_replicas had in time; they count all the same."},
    {Counter::fallback_local, "sluice_fallback_decisions_total", "answer", "local",
     "Decisions made in place of a failed store."},
    {Counter::fallback_allow, "sluice_fallback_decisions_total", "answer", "allow", ""},
    {Counter::fallback_deny, "sluice_fallback_decisions_total", "answer", "deny", ""},
    {Counter::verb_refund, "sluice_verbs_total", "verb", "refund",
     "Counters changed by another verb than a check, by the verb."},
    {Counter::verb_settle, "sluice_verbs_total", "verb", "settle", ""},
    {Counter::verb_penalize, "sluice_verbs_total", "verb", "penalize", ""},
    {Counter::verb_reset, "sluice_verbs_total", "verb", "reset", ""},
    {Counter::verb_ban, "sluice_verbs_total", "verb", "ban", ""},
    {Counter::verb_release, "sluice_verbs_total", "verb", "release", ""},
    {Counter::verb_failures, "sluice_verb_failures_total", "", "",
     "Counters that such a verb could not be carried out on, as the store failed."},
    {Counter::policy_reloads, "sluice_policy_reloads_total", "result", "ok",
     "Times that a policy was read again (changed files or SIGHUP); refused: it is wrong and the old one stays in "
     "force."},
    {Counter::policy_reloads_refused, "sluice_policy_reloads_total", "result", "refused", ""},
    {Counter::spans_exported, "sluice_trace_spans_total", "result", "exported",
     "Spans of decisions; dropped: too many waited for the collector; refused: it did not want them."},
    {Counter::spans_dropped, "sluice_trace_spans_total", "result", "dropped", ""},
    {Counter::spans_refused, "sluice_trace_spans_total", "result", "refused", ""},
    {Counter::span_export_failures, "sluice_trace_export_failures_total", "", "",
     "Batches of spans that the collector did not take."},
}};

constexpr bool every_counter_is_exposed_in_order() {
  for (std::size_t i = 0; i < kCounters; ++i) {
    if (kExposed[i].counter != static_cast<Counter>(i) || kExposed[i].name.empty()) return false;
  }
  return true;
}
static_assert(every_counter_is_exposed_in_order());

}  // namespace

void Shard::add_to(Histogram histogram, Buckets& buckets) const {
  const HistogramCells& cells = histograms_[static_cast<std::size_t>(histogram)];
  for (std::size_t i = 0; i <= kBuckets; ++i) buckets.counts[i] += cells.counts[i].load(std::memory_order_relaxed);
  buckets.sum += cells.sum.load(std::memory_order_relaxed);
}

Shard::RuleCells* Shard::make_cells(std::uint32_t limit_id) {
  if (limit_id >= mine_.size()) mine_.resize(limit_id + 1);
  const std::scoped_lock lock(mutex_);
  if (limit_id >= rules_.size()) rules_.resize(limit_id + 1);
  rules_[limit_id] = std::make_unique<RuleCells>();
  mine_[limit_id] = rules_[limit_id].get();
  return mine_[limit_id];
}

std::uint64_t Shard::value(std::uint32_t limit_id, Verdict verdict) const {
  const std::scoped_lock lock(mutex_);
  if (limit_id >= rules_.size() || rules_[limit_id] == nullptr) return 0;
  return rules_[limit_id]->verdicts[static_cast<std::size_t>(verdict)].load(std::memory_order_relaxed);
}

Shard& Registry::add_shard() {
  const std::scoped_lock lock(mutex_);
  Shard& shard = *shards_.emplace_back(std::make_unique<Shard>());
  if (near_ratio_) shard.limit_stats_ = std::make_unique<LimitStats>(*near_ratio_);
  return shard;
}

void Registry::count_limit_stats(float near_ratio) {
  const std::scoped_lock lock(mutex_);
  near_ratio_ = near_ratio;
}

LimitStats::Sums Registry::limit_stats() const {
  const std::scoped_lock lock(mutex_);
  LimitStats::Sums sums;
  for (const auto& shard : shards_) {
    if (const LimitStats* stats = shard->limit_stats()) stats->add_to(sums);
  }
  return sums;
}

void Registry::add_gauge(std::string name, std::string help, Read read) {
  const std::scoped_lock lock(mutex_);
  outside_.push_back({std::move(name), std::move(help), true, std::move(read)});
}

void Registry::add_counter(std::string name, std::string help, Read read) {
  const std::scoped_lock lock(mutex_);
  outside_.push_back({std::move(name), std::move(help), false, std::move(read)});
}

void Registry::add_families(std::function<void(TextFormat& text)> write) {
  const std::scoped_lock lock(mutex_);
  families_.push_back(std::move(write));
}

std::uint64_t Registry::total(Counter counter) const {
  const std::scoped_lock lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& shard : shards_) sum += shard->value(counter);
  return sum;
}

void Registry::expose_histograms(TextFormat& text) const {
  constexpr std::string_view seconds = "sluice_decision_latency_seconds";
  constexpr std::string_view batch = "sluice_store_batch_size";
  constexpr double second = 1e9;
  text.family(seconds, "histogram", "From the reading of a request to its decision, by who made it.");
  write_histogram(text, seconds, {"decided", "at_once"}, Histogram::decided_at_once, second);
  write_histogram(text, seconds, {"decided", "by_store"}, Histogram::decided_by_store, second);
  text.family(batch, "histogram", "Requests that share a call of the shared store.");
  write_histogram(text, batch, {}, Histogram::store_batch, 1);
}

void Registry::write_histogram(TextFormat& text, std::string_view name, TextFormat::Label label, Histogram histogram,
                               double unit) const {
  Shard::Buckets buckets;
  for (const auto& shard : shards_) shard->add_to(histogram, buckets);
  const auto sample = [&](std::string_view suffix, std::string_view le, auto value) {
    const TextFormat::Label bound{"le", le};
    if (le.empty() && label.first.empty()) {
      text.sample_of(name, suffix, {}, value);
    } else if (le.empty()) {
      text.sample_of(name, suffix, {label}, value);
    } else if (label.first.empty()) {
      text.sample_of(name, suffix, {bound}, value);
    } else {
      text.sample_of(name, suffix, {label, bound}, value);
    }
  };
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < Shard::kBuckets; ++i) {
    count += buckets.counts[i];
    sample("_bucket", fmt::format("{}", static_cast<double>(Shard::bound(histogram, i)) / unit), count);
  }
  count += buckets.counts[Shard::kBuckets];
  sample("_bucket", "+Inf", count);
  sample("_sum", "", static_cast<double>(buckets.sum) / unit);
  sample("_count", "", count);
}

std::string Registry::expose(const policy::Policy* policy) const {
  TextFormat text;
  std::string_view family;
  for (const Exposed& exposed : kExposed) {
    if (exposed.name != family) text.family(exposed.name, "counter", exposed.help);
    family = exposed.name;
    const std::uint64_t value = total(exposed.counter);
    if (exposed.label.empty()) {
      text.sample({}, value);
    } else {
      text.sample({{exposed.label, exposed.value}}, value);
    }
  }

  const std::scoped_lock lock(mutex_);
  // A series may stand in the text once, so equal labels (after what cannot be shown is replaced) are summed.
  struct Series {
    const policy::Rule* rule = nullptr;
    std::array<std::uint64_t, kVerdicts> sums{};
  };
  std::map<std::pair<std::string, std::string>, Series> all;
  if (policy != nullptr) {
    for (const policy::Rule* rule : policy->rules()) {
      Series& series = all[{escape_label(rule->domain), escape_label(rule->label())}];
      series.rule = rule;
      for (std::size_t verdict = 0; verdict < kVerdicts; ++verdict) {
        for (const auto& shard : shards_) {
          series.sums[verdict] += shard->value(rule->counted.id, static_cast<Verdict>(verdict));
        }
      }
    }
  }
  text.family("sluice_decisions_total", "counter", "Verdicts of limits, one for each descriptor judged.");
  for (const auto& [labels, series] : all) {
    for (std::size_t verdict = 0; verdict < kVerdicts; ++verdict) {
      if (static_cast<Verdict>(verdict) == Verdict::near_limit) continue;
      text.sample(
          {{"domain", series.rule->domain}, {"limit", series.rule->label()}, {"verdict", kVerdictNames[verdict]}},
          series.sums[verdict]);
    }
  }

  text.family("sluice_near_limit_total", "counter", "Verdicts that allowed and left less than a fifth of the limit.");
  for (const auto& [labels, series] : all) {
    text.sample({{"domain", series.rule->domain}, {"limit", series.rule->label()}},
                series.sums[static_cast<std::size_t>(Verdict::near_limit)]);
  }
  expose_histograms(text);

  for (const Outside& outside : outside_) {
    text.family(outside.name, outside.gauge ? "gauge" : "counter", outside.help);
    text.sample({}, outside.read());
  }
  for (const auto& write : families_) write(text);
  return text.take();
}

}  // namespace sluice::metrics
