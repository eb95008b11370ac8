#include "cli/check.h"

#include <filesystem>
#include <memory>
#include <ostream>
#include <string_view>

#include "base/duration.h"
#include "base/result.h"
#include "cli/descriptor_text.h"
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

std::string figures_of(const policy::Rule& rule, const Decision& decision, bool never_fits) {
  if (rule.unlimited) return rule.label() + " is unlimited";
  std::string text =
      rule.label() + " has " + std::to_string(decision.remaining) + " of " + std::to_string(decision.limit) + " left";
  if (!decision.allowed) {
    if (never_fits) return text + "; the request never fits";
    if (decision.retry_after.is_never()) return text + "; none comes back";
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
  std::string text = figures_of(*answer.deciding, answer.decision, answer.statuses[answer.decision.which].never_fits);
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
          << figures_of(*status.rule, status.decision, status.never_fits) << '\n';
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
    case Problem::needs_lease:
    case Problem::not_enforced:
    case Problem::too_long_to_hold:
      break;
  }
  return {};
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
  const std::string domain = pick_domain(options.domain, *loaded.policy, problem);
  if (!problem.empty()) return fail(problem);

  const auto asked = DescriptorTexts::parse(options.descriptors);
  if (!asked) return fail(asked.error().message);
  const Request request{.domain = domain, .descriptors = asked->descriptors(), .cost = options.cost};
  return decide(options, request, loaded.policy, clock.now(), out, err);
}

}  // namespace sluice::cli
