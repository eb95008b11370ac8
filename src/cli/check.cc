#include "cli/check.h"

#include <filesystem>
#include <memory>
#include <ostream>
#include <string_view>

#include "base/duration.h"
#include "base/result.h"
#include "base/suggest.h"
#include "front/http/check_codec.h"
#include "limiter/call.h"
#include "metrics/metrics.h"
#include "policy/policy.h"
#include "store/memory/memory_store.h"

namespace sluice::cli {
namespace {

constexpr int kAllowed = 0;
constexpr int kError = 1;
constexpr int kDenied = 2;

/// One entry, with the escapes of the command line taken away.
struct OwnEntry {
  std::string key;
  std::string value;
};

/// "key=value,key=value" → entries.
Result<std::vector<OwnEntry>> parse_descriptor(const std::string& text) {
  const Error shape{"expected key=value[,key=value…], found '" + text + "'"};
  std::vector<OwnEntry> entries(1);
  bool in_value = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ',') {
      if (!in_value) return shape;
      entries.emplace_back();
      in_value = false;
      continue;
    }
    if (c == '=' && !in_value) {
      if (entries.back().key.empty()) return shape;
      in_value = true;
      continue;
    }
    if (c == '\\') {
      if (i + 1 == text.size() || (text[i + 1] != ',' && text[i + 1] != '\\')) {
        return Error{"a backslash stands before a comma or a backslash only, found '" + text + "'"};
      }
      c = text[++i];
    }
    (in_value ? entries.back().value : entries.back().key).push_back(c);
  }
  if (!in_value) return shape;
  return entries;
}

std::string figures_of(const policy::Rule& rule, const Decision& decision) {
  if (rule.unlimited) return rule.label() + " is unlimited";
  std::string text =
      rule.label() + " has " + std::to_string(decision.remaining) + " of " + std::to_string(decision.limit) + " left";
  if (!decision.allowed) {
    if (decision.retry_after.is_never()) return text + "; the request never fits";
    return text + "; retry after " + to_rounded_text(decision.retry_after.value());
  }
  if (decision.delay > Wait()) text += "; act after " + to_rounded_text(decision.delay.value());
  if (!decision.reset_after.is_never() && decision.reset_after > Wait())
    text += "; reset after " + to_rounded_text(decision.reset_after.value());
  return text;
}

/// Why, in a sentence.
std::string reason_of(const limiter::Answer& answer) {
  if (answer.deciding == nullptr) return "no limit matches";
  std::string text = figures_of(*answer.deciding, answer.decision);
  if (answer.allowed && !answer.decision.allowed) text += " (not enforced)";
  return text;
}

void print_sentence(const CheckOptions& options, const limiter::Answer& answer, std::ostream& out) {
  out << (answer.allowed ? "allowed: " : "denied: ") << reason_of(answer) << '\n';
  if (answer.statuses.size() < 2) return;
  for (std::size_t i = 0; i < answer.statuses.size(); ++i) {
    const limiter::Status& status = answer.statuses[i];
    out << "  " << options.descriptors[i] << ": ";
    if (status.rule == nullptr) {
      out << "no limit matches\n";
    } else {
      out << (status.over_limit ? "over the limit: " : "within the limit: ")
          << figures_of(*status.rule, status.decision) << '\n';
    }
  }
}

std::string_view sentence_of(limiter::Answer::Problem problem) {
  using Problem = limiter::Answer::Problem;
  switch (problem) {
    case Problem::none:
      break;
    case Problem::empty_domain:
      return "the domain is empty";
    case Problem::no_descriptors:
      return "no descriptor: name what is asked for, such as user=42";
    case Problem::cost_out_of_range:
      return "--cost must be from 0 to 1000000000000000";
    case Problem::no_policy:
      return "no policy";
  }
  return {};
}

/// The domain asked, or an empty text and the reason.
std::string pick_domain(const CheckOptions& options, const policy::Policy& policy, std::string& problem) {
  const std::vector<std::string_view> names = policy.domain_names();
  if (options.domain.empty()) {
    if (names.size() == 1) return std::string(names.front());
    problem = "the policy has several domains; name one with --domain:";
    for (const std::string_view name : names) problem += " " + std::string(name);
    return {};
  }
  if (policy.find_domain(options.domain) == nullptr) {
    const std::string_view meant = nearest(options.domain, names);
    problem = "the policy has no domain '" + options.domain + "'" +
              (meant.empty() ? "" : "; did you mean '" + std::string(meant) + "'?");
    return {};
  }
  return options.domain;
}

class NoOwner final : public limiter::Call::Owner {
 public:
  void answered(limiter::Call&) override {}  // the memory store answers within the call
};

/// Asks `options.repeat` times at one instant.
int decide(const CheckOptions& options, const Request& request, const std::shared_ptr<const policy::Policy>& policy,
           Time now, std::ostream& out, std::ostream& err) {
  store::MemoryStore store(1'024);
  metrics::Registry metrics;
  NoOwner owner;
  limiter::Call call(owner, metrics.add_shard());
  int code = kAllowed;
  for (std::uint64_t i = 0; i < options.repeat; ++i) {
    if (call.start(request, policy, store, now) != store::Progress::answered) return kError;
    const limiter::Answer& answer = call.answer();
    if (answer.problem != limiter::Answer::Problem::none) {
      err << "sluice check: " << sentence_of(answer.problem) << '\n';
      return kError;
    }
    code = answer.allowed ? kAllowed : kDenied;
    if (options.json) {
      std::string json;
      http::encode_check(answer, json);
      out << json << '\n';
    } else {
      print_sentence(options, answer, out);
    }
  }
  return code;
}

}  // namespace

int check(const CheckOptions& options, std::ostream& out, std::ostream& err, const Clock& clock) {
  const auto fail = [&](const std::string& message) {
    err << "sluice check: " << message << '\n';
    return kError;
  };
  if (options.repeat < 1 || options.repeat > kMostRepeats) {
    return fail("--repeat must be from 1 to " + std::to_string(kMostRepeats));
  }
  const std::vector<std::filesystem::path> paths(options.policy.begin(), options.policy.end());
  const policy::Loaded loaded = policy::load(paths);
  if (loaded.policy == nullptr) {
    for (const policy::Finding& finding : loaded.findings) err << finding.to_string() << '\n';
    return kError;
  }
  std::string problem;
  const std::string domain = pick_domain(options, *loaded.policy, problem);
  if (!problem.empty()) return fail(problem);

  std::vector<std::vector<OwnEntry>> owned;
  for (const std::string& text : options.descriptors) {
    auto entries = parse_descriptor(text);
    if (!entries) return fail(entries.error().message);
    owned.push_back(std::move(*entries));
  }
  std::vector<std::vector<Entry>> entries;
  std::vector<Descriptor> descriptors;
  for (const std::vector<OwnEntry>& own : owned) {
    entries.emplace_back();
    for (const OwnEntry& entry : own) entries.back().push_back({entry.key, entry.value});
  }
  descriptors.reserve(entries.size());
  for (const std::vector<Entry>& one : entries) descriptors.push_back({.entries = one, .cost = {}, .limit = {}});
  const Request request{.domain = domain, .descriptors = descriptors, .cost = options.cost};
  return decide(options, request, loaded.policy, clock.now(), out, err);
}

}  // namespace sluice::cli
