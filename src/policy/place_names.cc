#include "policy/place_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/suggest.h"

namespace sluice::policy {
namespace {

struct KnownName {
  std::string_view name;
  Place place;
  bool of_envoy;  ///< one of the names that envoyproxy/ratelimit reads
};

constexpr std::array kNames{
    KnownName{"domain", Place::root, true},
    KnownName{"descriptors", Place::root, true},
    KnownName{"requests", Place::root, false},
    KnownName{"on_store_failure", Place::root, false},
    KnownName{"leases", Place::root, false},
    KnownName{"key", Place::descriptor, true},
    KnownName{"value", Place::descriptor, true},
    KnownName{"descriptors", Place::descriptor, true},
    KnownName{"rate_limit", Place::descriptor, true},
    KnownName{"shadow_mode", Place::descriptor, true},
    KnownName{"quota_mode", Place::descriptor, true},
    KnownName{"detailed_metric", Place::descriptor, true},
    KnownName{"value_to_metric", Place::descriptor, true},
    KnownName{"share_threshold", Place::descriptor, true},
    KnownName{"metadata", Place::descriptor, true},
    KnownName{"unit", Place::rate_limit, true},
    KnownName{"requests_per_unit", Place::rate_limit, true},
    KnownName{"unlimited", Place::rate_limit, true},
    KnownName{"name", Place::rate_limit, true},
    KnownName{"replaces", Place::rate_limit, true},
    KnownName{"algorithm", Place::rate_limit, false},
    KnownName{"burst", Place::rate_limit, false},
    KnownName{"period", Place::rate_limit, false},
    KnownName{"calendar", Place::rate_limit, false},
    KnownName{"align", Place::rate_limit, false},
    KnownName{"queue", Place::rate_limit, false},
    KnownName{"slots", Place::rate_limit, false},
    KnownName{"ttl", Place::rate_limit, false},
    KnownName{"count_denied", Place::rate_limit, false},
    KnownName{"on_store_failure", Place::rate_limit, false},
    KnownName{"local_share", Place::rate_limit, false},
    KnownName{"timeout", Place::rate_limit, false},
    KnownName{"lease", Place::rate_limit, false},
    KnownName{"overflow", Place::rate_limit, false},
    KnownName{"delay", Place::rate_limit, false},
    KnownName{"message", Place::rate_limit, false},
    KnownName{"body", Place::rate_limit, false},
    KnownName{"content_type", Place::rate_limit, false},
    KnownName{"allow_large_log", Place::rate_limit, false},
    KnownName{"name", Place::replaces, true},
    KnownName{"timezone", Place::calendar, false},
    KnownName{"anchor_day", Place::calendar, false},
    KnownName{"max_length", Place::overflow, false},
    KnownName{"max_age", Place::overflow, false},
    KnownName{"answer", Place::overflow, false},
    KnownName{"queue", Place::overflow, false},
};

std::string_view name_of(Place place) {
  switch (place) {
    case Place::root:
      return "at the top of the file";
    case Place::descriptor:
      return "in a descriptor";
    case Place::rate_limit:
      return "in `rate_limit`";
    case Place::replaces:
      return "in an item of `replaces`";
    case Place::calendar:
      return "in `calendar`";
    case Place::overflow:
      return "in `overflow`";
  }
  return {};
}

/// What was probably meant: best a name of this place, else of any.
std::string_view probably(std::string_view name, Place place) {
  std::vector<std::string_view> here;
  std::vector<std::string_view> anywhere;
  for (const KnownName& known : kNames) {
    anywhere.push_back(known.name);
    if (known.place == place) here.push_back(known.name);
  }
  const std::string_view near_here = nearest(name, here);
  return near_here.empty() ? nearest(name, anywhere) : near_here;
}

void complain(const Field& field, Place place, Findings& findings) {
  const auto* elsewhere = std::ranges::find(kNames, field.name, &KnownName::name);
  if (elsewhere == kNames.end()) {
    const std::string_view meant = probably(field.name, place);
    findings.error(
        field.key->position,
        meant.empty() ? fmt::format("unknown key {} {}", quote(field.name), name_of(place))
                      : fmt::format("unknown key {} {}; did you mean `{}`?", quote(field.name), name_of(place), meant));
  } else if (elsewhere->of_envoy) {
    findings.warning(field.key->position, fmt::format("`{}` does nothing {}; it belongs {}", field.name, name_of(place),
                                                      name_of(elsewhere->place)));
  } else {
    findings.error(field.key->position, fmt::format("`{}` does not belong {}, but {}", field.name, name_of(place),
                                                    name_of(elsewhere->place)));
  }
}

}  // namespace

void check_names(const FieldReader& fields, Place place, Findings& findings) {
  for (const Field& field : fields.fields()) {
    const bool belongs = std::ranges::any_of(
        kNames, [&](const KnownName& known) { return known.place == place && known.name == field.name; });
    if (!belongs) complain(field, place, findings);
  }
}

}  // namespace sluice::policy
