#include "cli/keys.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <utility>

#include "base/result.h"
#include "cli/descriptor_text.h"
#include "cli/key_report.h"
#include "cli/redis_connection.h"
#include "limiter/charge_list.h"
#include "policy/policy.h"
#include "store/redis/reply_reader.h"

namespace sluice::cli {
namespace {

// A person waits; what the daemon's store.redis.timeout is for does not count here.
constexpr std::chrono::milliseconds kPatience{5'000};

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

/// All keys that match, or an error when there are more than `most`.
Result<std::vector<std::string>> keys_of_pattern(const KeysOptions& options, const std::string& prefix,
                                                 RedisConnection& connection) {
  if (!options.pattern.starts_with(prefix)) {
    return Error{"the pattern must begin with the prefix " + prefix + ", so that others' keys are left alone"};
  }
  std::set<std::string> names;  // SCAN may tell one twice
  std::string cursor = "0";
  do {
    const auto answer = connection.command({"SCAN", cursor, "MATCH", options.pattern, "COUNT", "1000"});
    if (!answer) return answer.error();
    if ((*answer)->elements != 2) return Error{"the server's answer to SCAN is not of its shape"};
    cursor = store::redis::text_of(*(*answer)->element[0]);
    const redisReply& found = *(*answer)->element[1];
    for (std::size_t i = 0; i < found.elements; ++i) names.emplace(store::redis::text_of(*found.element[i]));
    if (names.size() > options.most) {
      return Error{"more than " + std::to_string(options.most) + " keys match; narrow the pattern, or raise --most"};
    }
  } while (cursor != "0");
  return std::vector<std::string>(names.begin(), names.end());
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
  return 0;
}

int reset(const KeysOptions& options, const std::vector<std::string>& names, RedisConnection& connection,
          std::ostream& out, std::ostream& err) {
  long long removed = 0;
  for (const std::string& name : names) {
    const auto answer = connection.command({"DEL", name});
    if (!answer) {
      err << "sluice keys: " << answer.error().message << "; " << removed << " keys were removed before\n";
      return 1;
    }
    removed += (*answer)->integer;
  }
  if (options.json) {
    out << R"({"keys":)" << names.size() << R"(,"removed":)" << removed << "}\n";
  } else {
    out << removed << " of " << names.size() << (names.size() == 1 ? " key" : " keys") << " removed"
        << (removed < static_cast<long long>(names.size()) ? "; the others were not there\n" : "\n");
  }
  return 0;
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
  if (ways != 1) return fail("name the counters: by descriptors such as user=42, by --key, or by --pattern");
  if (options.most < 1 || options.most > kMostKeys)
    return fail("--most must be from 1 to " + std::to_string(kMostKeys));

  const auto resolved = resolve_settings(options.settings, err);
  if (!resolved) return 1;
  const config::Settings& settings = resolved->settings;
  if (settings.redis_url.empty()) return fail("no Redis: name it with --store.redis.url");
  const auto policy = load_policy(settings, err);
  if (!policy) return fail(policy.error().message);
  auto connection = RedisConnection::open(settings, kPatience);
  if (!connection) return fail(connection.error().message);
  KeyReader reader(*connection, settings.redis_prefix, policy->get());

  Result<std::vector<std::string>> names(options.keys);
  if (!options.descriptors.empty()) names = keys_of_descriptors(options, policy->get(), reader);
  if (!options.pattern.empty()) names = keys_of_pattern(options, settings.redis_prefix, *connection);
  if (!names) return fail(names.error().message);
  if (!is_reset) return inspect(options, *names, reader, out, err);
  if (!options.pattern.empty() && !options.yes && !names->empty()) {
    if (!is_terminal) return fail(std::to_string(names->size()) + " keys match; say --yes to remove them");
    for (const std::string& name : *names) out << name << '\n';
    out << "Remove these " << names->size() << " keys from " << connection->server() << "? [y/N] " << std::flush;
    std::string answer;
    if (!std::getline(in, answer) || (answer != "y" && answer != "yes")) return fail("nothing was removed");
  }
  return reset(options, *names, *connection, out, err);
}

}  // namespace sluice::cli
