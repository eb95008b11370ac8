// Policy files: any bytes load or are refused with findings; what loads answers any look-up.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "policy/first_document.h"
#include "policy/metric_path.h"
#include "policy/policy.h"

namespace {

using sluice::Entry;
namespace policy = sluice::policy;

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_key(std::string_view key) {
  for (const char c : key) {
    if (c <= ' ' || c > '~' || c == '{' || c == '}') return false;
  }
  return !key.empty() && key.size() <= 200;
}

void look_up(const policy::Policy& loaded, const policy::Domain& domain, const std::vector<Entry>& entries) {
  std::string key = "x";
  const policy::Rule* rule = loaded.match(domain, entries, key);
  require(key.starts_with('x'));
  if (rule == nullptr) {
    require(key.size() == 1);
    return;
  }
  require(is_key(std::string_view(key).substr(1)));
  require(!rule->counted.identity.empty() && rule->counted.id != 0);
  (void)policy::metric_path_for(*rule, entries);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::array<policy::SourceText, 1> texts{{{"fuzz.yaml", text}}};
  policy::LoadOptions as_envoyproxy;
  as_envoyproxy.envoy.emplace();
  require(text.starts_with(policy::first_document(text).text));
  (void)policy::load_texts(texts, as_envoyproxy);
  const policy::Loaded loaded = policy::load_texts(texts);
  bool has_errors = false;
  for (const policy::Finding& finding : loaded.findings) {
    has_errors = has_errors || finding.severity == policy::Finding::Severity::error;
    require(!finding.to_string().empty());
  }
  require((loaded.policy == nullptr) == has_errors);
  if (loaded.policy == nullptr) return 0;
  for (const std::string_view name : loaded.policy->domain_names()) {
    const policy::Domain* domain = loaded.policy->find_domain(name);
    require(domain != nullptr);
    for (const policy::Rule* rule : loaded.policy->rules()) {
      look_up(*loaded.policy, *domain, {{rule->metric_path, text}});
    }
    look_up(*loaded.policy, *domain, {{"user", "42"}});
    look_up(*loaded.policy, *domain, {{"path", "/api/x"}, {"user", text}});
    look_up(*loaded.policy, *domain, {{"a", ""}, {"b", "x"}, {"c", "y"}});
  }
  return 0;
}
