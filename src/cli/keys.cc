#include "cli/keys.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <utility>

#include "base/result.h"
#include "cli/descriptor_text.h"
#include "cli/key_report.h"
#include "cli/printable.h"
#include "cli/progress_line.h"
#include "cli/redis_servers.h"
#include "config/redis_options.h"
#include "limiter/charge_list.h"
#include "policy/policy.h"

namespace sluice::cli {
namespace {

// A person waits; what the daemon's store.redis.timeout is for does not count here.
constexpr std::chrono::milliseconds kPatience{5'000};
constexpr std::size_t kMostShown = 20;

Result<std::shared_ptr<const policy::Policy>> load_policy(const config::Settings& settings, std::ostream& err) {
  if (settings.policy.empty()) return std::shared_ptr<const policy::Policy>();
  const std::vector<std::filesystem::path> paths(settings.policy.begin(), settings.policy.end());
  policy::Loaded loaded = policy::load(paths);
  if (loaded.policy != nullptr) return loaded.policy;
  for (const policy::Finding& finding : loaded.findings) err << finding.to_string() << '\n';
  return Error{"the policy cannot be loaded"};
}

/// The names of the counters that descriptors lead to.
Result<std::vector<std::string>> keys_of_descriptors(const KeysOptions& options, const policy::Policy* policy,
                                                     const KeyReader& reader) {
  if (policy == nullptr) return Error{"descriptors need a policy: name a file or directory with --policy"};
  std::string problem;
  const std::string domain = pick_domain(options.domain, *policy, problem);
  if (!problem.empty()) return Error{problem};
  const auto asked = DescriptorTexts::parse(options.descriptors);
  if (!asked) return asked.error();
  limiter::ChargeList list;
  list.collect({.domain = domain, .descriptors = asked->descriptors()}, *policy, *policy->find_domain(domain));
  for (std::size_t i = 0; i < list.matched().size(); ++i) {
    if (list.matched()[i].charge == limiter::ChargeList::kNoCharge) {
      return Error{"no limit of domain '" + domain + "' counts " + options.descriptors[i]};
    }
  }
  std::vector<std::string> names;
  for (const store::Charge& charge : list.charges()) names.push_back(reader.key_of(*charge.limit, charge.key));
  return names;
}

std::string counted_keys(std::size_t count) { return std::to_string(count) + (count == 1 ? " key" : " keys"); }

/// What is to be removed, so that others' keys are left alone.
struct Chosen {
  std::vector<std::string> names;
  std::size_t left_alone = 0;  ///< that a pattern matched, and are no counters
};

Result<Chosen> choose(const KeysOptions& options, std::vector<std::string> names, const KeyReader& reader) {
  Chosen chosen;
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  for (std::string& name : names) {
    if (reader.is_counter(name)) {
      chosen.names.push_back(std::move(name));
    } else if (options.pattern.empty()) {
      return Error{"'" + printable(name) + "' is not the name of a counter of Sluice's (" + reader.shape() +
                   "); nothing was removed"};
    } else {
      ++chosen.left_alone;
    }
  }
  return chosen;
}

int inspect(const KeysOptions& options, const std::vector<std::string>& names, KeyReader& reader, std::ostream& out,
            std::ostream& err) {
  for (const std::string& name : names) {
    const auto report = reader.read(name);
    if (!report) {
      err << "sluice keys: " << report.error().message << '\n';
      return 1;
    }
    out << (options.json ? to_json(*report) + '\n' : to_words(*report));
  }
  if (names.empty()) err << "sluice keys: no counter matches " << options.pattern << '\n';
  return 0;
}

int reset(const KeysOptions& options, const Chosen& chosen, RedisServers& servers, std::ostream& out,
          std::ostream& err) {
  const std::size_t count = chosen.names.size();
  std::uint64_t removed = 0;
  std::optional<Error> error;
  {
    ProgressLine progress;
    error = servers.remove(chosen.names, removed, [&](std::size_t done) {
      if (progress.is_due()) progress.show("removed " + std::to_string(done) + " of " + counted_keys(count));
    });
  }
  if (error) {
    err << "sluice keys: " << error->message << "; " << counted_keys(removed) << (removed == 1 ? " was" : " were")
        << " removed before\n";
    return 1;
  }
  if (options.json) {
    out << R"({"keys":)" << count << R"(,"removed":)" << removed;
    if (chosen.left_alone > 0) out << R"(,"left_alone":)" << chosen.left_alone;
    out << "}\n";
    return 0;
  }
  out << removed << " of " << counted_keys(count) << " removed";
  if (removed < count) out << (count - removed == 1 ? "; the other was not there" : "; the others were not there");
  if (chosen.left_alone > 0) {
    out << "; " << counted_keys(chosen.left_alone) << " of the pattern left alone, as "
        << (chosen.left_alone == 1 ? "it is no counter" : "they are no counters");
  }
  out << '\n';
  return 0;
}

/// Is whoever sits there sure?
bool agrees(const Chosen& chosen, const std::string& where, std::istream& in, std::ostream& out) {
  const std::size_t count = chosen.names.size();
  const std::size_t shown = std::min(count, kMostShown);
  for (const std::string& name : std::span(chosen.names).first(shown)) out << printable(name) << '\n';
  if (shown < count) out << "... and " << counted_keys(count - shown) << " more\n";
  out << "Remove " << (count == 1 ? "this key" : "these " + counted_keys(count)) << " from " << where << "? [y/N] "
      << std::flush;
  std::string answer;
  return std::getline(in, answer) && (answer == "y" || answer == "yes");
}

}  // namespace

int keys(const KeysOptions& options, std::istream& in, bool is_terminal, std::ostream& out, std::ostream& err) {
  const auto fail = [&err](const std::string& message) {
    err << "sluice keys: " << message << '\n';
    return 1;
  };
  const bool is_reset = options.action == "reset";
  if (!is_reset && options.action != "inspect") {
    return fail("expected inspect or reset, found '" + options.action + "'");
  }
  const int ways =
      (options.descriptors.empty() ? 0 : 1) + (options.keys.empty() ? 0 : 1) + (options.pattern.empty() ? 0 : 1);
  if (ways != 1) {
    return fail("name the counters in one way: by descriptors such as user=42, by --key, or by --pattern");
  }
  if (options.most < 1 || options.most > kMostKeys)
    return fail("--most must be from 1 to " + std::to_string(kMostKeys));

  const auto resolved = resolve_settings(options.settings, err);
  if (!resolved) return 1;
  const config::Settings& settings = resolved->settings;
  if (settings.redis_url.empty()) return fail("no Redis: name it with --store.redis.url");
  const auto policy = load_policy(settings, err);
  if (!policy) return fail(policy.error().message);
  auto servers = RedisServers::open(config::redis_options(settings, kPatience));
  if (!servers) return fail(servers.error().message);
  KeyReader reader(**servers, settings.redis_prefix, policy->get());

  Result<std::vector<std::string>> names(options.keys);
  if (!options.descriptors.empty()) names = keys_of_descriptors(options, policy->get(), reader);
  if (!options.pattern.empty()) {
    if (!options.pattern.starts_with(settings.redis_prefix)) {
      return fail("the pattern must begin with the prefix " + settings.redis_prefix +
                  ", so that others' keys are left alone");
    }
    ProgressLine progress;
    names = (*servers)->find(options.pattern, options.most, [&](std::size_t found) {
      if (progress.is_due()) progress.show("found " + counted_keys(found));
    });
  }
  if (!names) return fail(names.error().message);
  if (!is_reset) return inspect(options, *names, reader, out, err);
  const auto chosen = choose(options, *std::move(names), reader);
  if (!chosen) return fail(chosen.error().message);
  if (!options.pattern.empty() && !options.yes && !chosen->names.empty()) {
    const std::size_t count = chosen->names.size();
    if (!is_terminal) {
      return fail(counted_keys(count) +
                  (count == 1 ? " matches; say --yes to remove it" : " match; say --yes to remove them"));
    }
    if (!agrees(*chosen, (*servers)->name(), in, out)) return fail("nothing was removed");
  }
  return reset(options, *chosen, **servers, out, err);
}

}  // namespace sluice::cli
