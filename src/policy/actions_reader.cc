#include "policy/actions_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <span>
#include <utility>

#include "base/suggest.h"
#include "policy/requests_fields.h"
#include "sluice/limit.h"

namespace sluice::policy {
namespace {

using request::Action;
using request::Match;
using request::OnMissing;
using Kind = Action::Kind;

struct NamedKind {
  std::string_view name;
  Kind kind;
};
constexpr std::array kKinds{
    NamedKind{"generic_key", Kind::generic_key},
    NamedKind{"remote_address", Kind::remote_address},
    NamedKind{"masked_remote_address", Kind::masked_remote_address},
    NamedKind{"request_headers", Kind::request_headers},
    NamedKind{"header_value_match", Kind::header_value_match},
    NamedKind{"query_parameters", Kind::query_parameters},
    NamedKind{"query_parameter_value_match", Kind::query_parameter_value_match},
    NamedKind{"jwt_claim", Kind::jwt_claim},
    NamedKind{"api_key", Kind::api_key},
    NamedKind{"cookie", Kind::cookie},
    NamedKind{"method", Kind::method},
    NamedKind{"path", Kind::path},
    NamedKind{"route", Kind::route},
};

/// Envoy has them, and only Envoy knows what they need.
constexpr std::array<std::string_view, 6> kOnlyEnvoy{"source_cluster",   "destination_cluster", "metadata",
                                                     "dynamic_metadata", "extension",           "remote_address_match"};

std::vector<std::string_view> kind_names() {
  std::vector<std::string_view> names;
  names.reserve(kKinds.size());
  for (const NamedKind& kind : kKinds) names.push_back(kind.name);
  return names;
}

std::string names_of_kinds() {
  const std::vector<std::string_view> names = kind_names();
  return fmt::format("{}, cost", fmt::join(names, ", "));
}

/// Reads one action out of its map.
class ActionReader {
 public:
  ActionReader(NamedKind kind, const yaml::Node& node, yaml::Position position, ActionNeeds& needs, Findings& findings)
      : position_(position),
        needs_(needs),
        findings_(findings),
        name_(kind.name),
        place_(fmt::format("in `{}`", kind.name)),
        fields_(map_of(node, kind.name, findings), findings) {
    action_.kind = kind.kind;
  }

  Action read() {
    switch (action_.kind) {
      case Kind::generic_key:
        check({"descriptor_key", "descriptor_value"});
        key("generic_key");
        action_.value = needed("descriptor_value");
        break;
      case Kind::remote_address:
        check({"descriptor_key", "v4_prefix", "v6_prefix", "on_missing"});
        key("remote_address");
        address("v4_prefix", "v6_prefix", 64);
        break;
      case Kind::masked_remote_address:
        check({"descriptor_key", "v4_prefix_mask_len", "v6_prefix_mask_len", "on_missing"});
        key("masked_remote_address");
        address("v4_prefix_mask_len", "v6_prefix_mask_len", 128);
        break;
      case Kind::request_headers:
        check({"header_name", "descriptor_key", "skip_if_absent", "on_missing"});
        action_.source = lower_case(needed("header_name"));
        action_.key = needed("descriptor_key");
        action_.skip_if_absent = fields_.boolean("skip_if_absent").value_or(false);
        break;
      case Kind::query_parameters:
        check({"query_parameter_name", "descriptor_key", "skip_if_absent", "on_missing"});
        action_.source = needed("query_parameter_name");
        action_.key = needed("descriptor_key");
        action_.skip_if_absent = fields_.boolean("skip_if_absent").value_or(false);
        break;
      case Kind::header_value_match:
        check({"descriptor_key", "descriptor_value", "expect_match", "headers"});
        value_match("header_match", "headers", true);
        break;
      case Kind::query_parameter_value_match:
        check({"descriptor_key", "descriptor_value", "expect_match", "query_parameters"});
        value_match("query_match", "query_parameters", false);
        break;
      case Kind::jwt_claim:
        check({"claim", "descriptor_key", "on_missing"});
        claim();
        break;
      case Kind::api_key:
        check({"header_name", "query_parameter_name", "cookie_name", "descriptor_key", "on_missing"});
        api_key();
        break;
      case Kind::cookie:
        check({"name", "descriptor_key", "on_missing"});
        action_.source = needed("name");
        key(action_.source);
        break;
      case Kind::method:
        check({"descriptor_key"});
        key("method");
        break;
      case Kind::path:
        check({"descriptor_key"});
        key("path");
        break;
      case Kind::route:
        check({"descriptor_key", "patterns"});
        key("route");
        routes();
        break;
    }
    on_missing();
    return std::move(action_);
  }

 private:
  void check(std::initializer_list<std::string_view> known) { check_keys(fields_, known, place_, findings_); }

  void key(std::string_view fallback) {
    action_.key = fields_.text("descriptor_key").value_or(fallback);
    if (action_.key.empty()) action_.key = fallback;
  }

  std::string needed(std::string_view name) {
    const std::size_t errors = findings_.errors();
    const std::string_view text = fields_.text(name).value_or("");
    if (text.empty() && findings_.errors() == errors) {
      findings_.error(position_, fmt::format("`{}` needs a `{}`, found none", name_, name));
    }
    return std::string(text);
  }

  void address(std::string_view v4, std::string_view v6, unsigned v6_default) {
    action_.v4_bits = static_cast<unsigned>(fields_.number(v4, 0, 32).value_or(32));
    action_.v6_bits = static_cast<unsigned>(fields_.number(v6, 0, 128).value_or(v6_default));
    if (!needs_.address) needs_.address = position_;
  }

  void value_match(std::string_view default_key, std::string_view list, bool of_headers) {
    key(default_key);
    action_.value = needed("descriptor_value");
    action_.expect_match = fields_.boolean("expect_match").value_or(true);
    for (const yaml::Node* item : fields_.maps(list)) action_.matches.push_back(read_match(*item, of_headers));
    if (fields_.find(list) == nullptr) {
      findings_.error(position_, fmt::format("`{}` needs `{}`, found none", name_, list));
    }
  }

  Match read_match(const yaml::Node& map, bool of_header) {
    const FieldReader fields(map, findings_);
    Match match;
    if (of_header) {
      check_keys(fields,
                 {"name", "exact_match", "safe_regex_match", "range_match", "present_match", "prefix_match",
                  "suffix_match", "contains_match", "string_match", "invert_match", "treat_missing_header_as_empty"},
                 "in an item of `headers`", findings_);
    } else {
      check_keys(fields, {"name", "string_match", "present_match"}, "in an item of `query_parameters`", findings_);
    }
    const std::string_view name = fields.text("name").value_or("");
    if (name.empty()) findings_.error(map.position, "a match needs the `name` of what it looks at, found none");
    match.name = of_header ? lower_case(name) : std::string(name);
    match.invert = fields.boolean("invert_match").value_or(false);
    match.missing_is_empty = fields.boolean("treat_missing_header_as_empty").value_or(false);
    int forms = 0;
    for (const auto& [field, kind] :
         std::initializer_list<std::pair<std::string_view, Match::Kind>>{{"exact_match", Match::Kind::exact},
                                                                         {"prefix_match", Match::Kind::prefix},
                                                                         {"suffix_match", Match::Kind::suffix},
                                                                         {"contains_match", Match::Kind::contains}}) {
      if (const auto text = fields.text(field)) {
        ++forms;
        match.kind = kind;
        match.text = *text;
      }
    }
    if (const auto present = fields.boolean("present_match")) {
      ++forms;
      match.kind = Match::Kind::present;
      if (!*present) match.invert = !match.invert;
    }
    if (const Field* string = fields.find("string_match")) {
      ++forms;
      read_string_match(*string->value, match);
    }
    if (const Field* range = fields.find("range_match")) {
      ++forms;
      read_range(*range->value, match);
    }
    if (const Field* regex = fields.find("safe_regex_match")) {
      ++forms;
      refuse_regex(regex->key->position);
    }
    if (forms > 1) findings_.error(map.position, "a match has one way to compare, found several");
    return match;
  }

  void read_string_match(const yaml::Node& node, Match& match) {
    const FieldReader fields(map_of(node, "string_match", findings_), findings_);
    check_keys(fields, {"exact", "prefix", "suffix", "contains", "safe_regex", "ignore_case"}, "in `string_match`",
               findings_);
    match.ignore_case = fields.boolean("ignore_case").value_or(false);
    int forms = 0;
    for (const auto& [field, kind] :
         std::initializer_list<std::pair<std::string_view, Match::Kind>>{{"exact", Match::Kind::exact},
                                                                         {"prefix", Match::Kind::prefix},
                                                                         {"suffix", Match::Kind::suffix},
                                                                         {"contains", Match::Kind::contains}}) {
      if (const auto text = fields.text(field)) {
        ++forms;
        match.kind = kind;
        match.text = match.ignore_case ? lower_case(*text) : std::string(*text);
      }
    }
    if (const Field* regex = fields.find("safe_regex")) {
      refuse_regex(regex->key->position);
    } else if (forms != 1) {
      findings_.error(node.position, "`string_match` needs one of exact, prefix, suffix, contains");
    }
  }

  void refuse_regex(yaml::Position position) {
    findings_.error(position,
                    "regular expressions are not supported; use an exact, prefix, suffix or contains match, or a "
                    "`route` with patterns such as /articles/{id}");
  }

  void read_range(const yaml::Node& node, Match& match) {
    match.kind = Match::Kind::range;
    const FieldReader fields(map_of(node, "range_match", findings_), findings_);
    check_keys(fields, {"start", "end"}, "in `range_match`", findings_);
    match.begin = whole_number(fields, "start");
    match.end = whole_number(fields, "end");
  }

  std::int64_t whole_number(const FieldReader& fields, std::string_view name) {
    const Field* field = fields.find(name);
    if (field == nullptr) return 0;
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (field->value->kind == yaml::Node::Kind::scalar) {
      const yaml::Scalar scalar = resolve_scalar(*field->value);
      if (scalar.type == yaml::Scalar::Type::integer && scalar.magnitude <= most) {
        const auto magnitude = static_cast<std::int64_t>(scalar.magnitude);
        return scalar.negative ? -magnitude : magnitude;
      }
    }
    findings_.error(field->value->position,
                    fmt::format("`{}` must be a whole number, found {}", name, described(*field->value)));
    return 0;
  }

  void claim() {
    if (!needs_.claim) needs_.claim = position_;
    std::vector<std::string> path;
    const Field* field = fields_.find("claim");
    if (field != nullptr && field->value->kind == yaml::Node::Kind::sequence) {
      for (PlacedText& text : texts_of(fields_, "claim", findings_)) path.push_back(std::move(text.text));
    } else {
      std::string_view rest = fields_.text("claim").value_or("");
      while (!rest.empty()) {
        const std::size_t dot = rest.find('.');
        path.emplace_back(rest.substr(0, dot));
        rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
      }
    }
    if (path.empty() || std::ranges::any_of(path, &std::string::empty)) {
      findings_.error(position_,
                      "`jwt_claim` needs a `claim`: a name such as sub, a path such as realm.user, or a list of names "
                      "where they hold dots");
    }
    key(path.empty() ? std::string_view("jwt_claim") : std::string_view(path.back()));
    const auto known = std::ranges::find(needs_.claims, path);
    action_.claim = static_cast<std::size_t>(known - needs_.claims.begin());
    if (known == needs_.claims.end()) needs_.claims.push_back(std::move(path));
  }

  void api_key() {
    if (!needs_.api_key) needs_.api_key = position_;
    key("api_key");
    int places = 0;
    for (const auto& [field, place] : std::initializer_list<std::pair<std::string_view, request::Place>>{
             {"header_name", request::Place::header},
             {"query_parameter_name", request::Place::parameter},
             {"cookie_name", request::Place::cookie}}) {
      const auto text = fields_.text(field);
      if (!text || text->empty()) continue;
      ++places;
      action_.place = place;
      action_.source = place == request::Place::header ? lower_case(*text) : std::string(*text);
    }
    if (places != 1) {
      findings_.error(position_, "`api_key` needs one of header_name, query_parameter_name, cookie_name");
    }
  }

  void routes() {
    for (const PlacedText& text : texts_of(fields_, "patterns", findings_)) {
      Result<request::RoutePattern> pattern = request::RoutePattern::parse(text.text);
      if (pattern) {
        action_.routes.push_back(*std::move(pattern));
      } else {
        findings_.error(text.position, pattern.error().message);
      }
    }
  }

  void on_missing() {
    const bool is_identity = action_.kind == Kind::jwt_claim || action_.kind == Kind::api_key;
    action_.on_missing = is_identity ? OnMissing::deny : OnMissing::skip;
    const Field* field = fields_.find("on_missing");
    if (field == nullptr) return;
    if (action_.skip_if_absent) {
      findings_.error(field->key->position, "give `skip_if_absent` or `on_missing`, found both");
    }
    if (field->value->kind == yaml::Node::Kind::scalar) {
      const std::string& text = field->value->text;
      if (text == "deny") {
        action_.on_missing = OnMissing::deny;
      } else if (text == "skip") {
        action_.on_missing = OnMissing::skip;
      } else if (text == "remote_address" || text == "masked_remote_address") {
        static const yaml::Node kNothing;
        add_instead(text, kNothing, field->value->position);
      } else {
        findings_.error(field->value->position,
                        fmt::format("`on_missing` must be deny, skip, or an action to count by in its place, such as "
                                    "remote_address or {{ cookie: {{ name: … }} }}; found {}",
                                    quote(text)));
      }
      return;
    }
    const FieldReader fields(map_of(*field->value, "on_missing", findings_), findings_);
    if (fields.fields().size() != 1) {
      findings_.error(field->value->position,
                      fmt::format("`on_missing` holds one action, found {}", fields.fields().size()));
      return;
    }
    const Field& only = fields.fields().front();
    add_instead(only.name, *only.value, only.key->position);
  }

  /// A key that is the same for all would let one of those without an identity use up what is there for the others.
  void add_instead(std::string_view name, const yaml::Node& node, yaml::Position position) {
    constexpr std::array identities{Kind::remote_address,  Kind::masked_remote_address,
                                    Kind::request_headers, Kind::query_parameters,
                                    Kind::jwt_claim,       Kind::api_key,
                                    Kind::cookie};
    const auto* const kind = std::ranges::find(kKinds, name, &NamedKind::name);
    if (kind == kKinds.end() || std::ranges::find(identities, kind->kind) == identities.end()) {
      findings_.error(position,
                      fmt::format("`on_missing` counts by something of the request's own: remote_address, "
                                  "masked_remote_address, request_headers, query_parameters, jwt_claim, api_key or "
                                  "cookie; found {}",
                                  quote(name)));
      return;
    }
    action_.on_missing = OnMissing::other;
    action_.instead.push_back(ActionReader(*kind, node, position, needs_, findings_).read());
  }

  yaml::Position position_;
  ActionNeeds& needs_;
  Findings& findings_;
  std::string_view name_;
  std::string place_;
  FieldReader fields_;
  Action action_;
};

/// Envoy's format for a cost, "%REQ(x-cost)%".
std::optional<std::string> header_of_format(std::string_view format) {
  constexpr std::string_view head = "%REQ(";
  constexpr std::string_view tail = ")%";
  if (!format.starts_with(head) || !format.ends_with(tail) || format.size() <= head.size() + tail.size()) {
    return std::nullopt;
  }
  const std::string_view name = format.substr(head.size(), format.size() - head.size() - tail.size());
  if (name.find_first_of("%()?:") != std::string_view::npos) return std::nullopt;
  return lower_case(name);
}

void warn_of_no_cost(yaml::Position position, Findings& findings) {
  findings.warning(position, "a cost of 0 takes nothing: such requests use up no limit");
}

request::Cost read_hits_addend(const yaml::Node& node, Findings& findings) {
  const FieldReader fields(map_of(node, "hits_addend", findings), findings);
  check_keys(fields, {"number", "format"}, "in `hits_addend`", findings);
  request::Cost cost;
  if (const auto number = fields.number("number", 0, kMaxTokens)) {
    cost.constant = *number;
    if (*number == 0) warn_of_no_cost(fields.find("number")->value->position, findings);
  }
  if (const auto format = fields.text("format")) {
    if (const auto header = header_of_format(*format)) {
      cost.header = *header;
    } else {
      findings.error(fields.find("format")->value->position,
                     fmt::format("`format` must be that of a header, %REQ(x-cost)%, found {}", quote(*format)));
    }
  }
  return cost;
}

void read_action(const yaml::Node& node, ActionNeeds& needs, request::DescriptorRule& rule, Findings& findings) {
  static const yaml::Node kNothing;
  std::string_view name = node.text;
  const yaml::Node* value = &kNothing;
  yaml::Position position = node.position;
  if (node.kind == yaml::Node::Kind::map) {
    const FieldReader fields(node, findings);
    if (fields.fields().size() != 1) {
      findings.error(node.position, fmt::format("an action is a map of one key, found {}", fields.fields().size()));
      return;
    }
    name = fields.fields().front().name;
    value = fields.fields().front().value;
    position = fields.fields().front().key->position;
  } else if (node.kind != yaml::Node::Kind::scalar) {
    findings.error(node.position,
                   fmt::format("an action is a map such as {{ remote_address: {{}} }}, found {}", described(node)));
    return;
  }
  if (name == "cost") {
    rule.cost = read_cost(*value, findings);
    return;
  }
  const auto* const kind = std::ranges::find(kKinds, name, &NamedKind::name);
  if (kind != kKinds.end()) {
    rule.actions.push_back(ActionReader(*kind, *value, position, needs, findings).read());
    return;
  }
  if (std::ranges::find(kOnlyEnvoy, name) != kOnlyEnvoy.end()) {
    findings.error(position, fmt::format("the action `{}` needs what only Envoy knows; it can be used in Envoy's own "
                                         "rate_limits, with the gRPC service, but not here",
                                         name));
    return;
  }
  const std::vector<std::string_view> names = kind_names();
  const std::string_view meant = nearest(name, names);
  findings.error(position, fmt::format("unknown action {}; {}", quote(name),
                                       meant.empty() ? fmt::format("there are {}", names_of_kinds())
                                                     : fmt::format("did you mean `{}`?", meant)));
}

}  // namespace

request::Cost read_cost(const yaml::Node& node, Findings& findings) {
  request::Cost cost;
  if (node.kind == yaml::Node::Kind::scalar) {
    const yaml::Scalar scalar = resolve_scalar(node);
    if (scalar.type == yaml::Scalar::Type::integer && !scalar.negative && scalar.magnitude <= kMaxTokens) {
      cost.constant = scalar.magnitude;
      if (cost.constant == 0) warn_of_no_cost(node.position, findings);
      return cost;
    }
  } else if (node.kind == yaml::Node::Kind::map) {
    const FieldReader fields(node, findings);
    check_keys(fields, {"header_name", "default"}, "in `cost`", findings);
    cost.header = lower_case(fields.text("header_name").value_or(""));
    if (cost.header.empty()) findings.error(node.position, "`cost` needs a `header_name`, found none");
    cost.constant = fields.number("default", 1, kMaxTokens).value_or(1);
    return cost;
  }
  findings.error(node.position, fmt::format("`cost` must be a whole number from 0 to {} or a map with a `header_name`, "
                                            "found {}",
                                            kMaxTokens, described(node)));
  return cost;
}

request::DescriptorRule read_descriptor_rule(const yaml::Node& map, ActionNeeds& needs, Findings& findings) {
  request::DescriptorRule rule;
  const FieldReader fields(map, findings);
  check_keys(fields, {"actions", "cost", "hits_addend", "stage", "disable_key", "limit", "apply_on_stream_done"},
             "in an item of `rate_limits`", findings);
  for (const std::string_view idle : {"stage", "disable_key"}) {
    if (const Field* field = fields.find(idle)) {
      findings.warning(field->key->position, fmt::format("`{}` is Envoy's own and does nothing here", idle));
    }
  }
  for (const std::string_view refused : {"limit", "apply_on_stream_done"}) {
    if (const Field* field = fields.find(refused)) {
      findings.error(field->key->position, fmt::format("`{}` is not supported here, only by Envoy itself", refused));
    }
  }
  if (const Field* cost = fields.find("cost")) rule.cost = read_cost(*cost->value, findings);
  if (const Field* addend = fields.find("hits_addend")) {
    if (rule.cost) findings.error(addend->key->position, "give `cost` or `hits_addend`, found both");
    rule.cost = read_hits_addend(*addend->value, findings);
  }
  const Field* actions = fields.find("actions");
  if (actions == nullptr || actions->value->kind != yaml::Node::Kind::sequence) {
    findings.error(actions == nullptr ? map.position : actions->value->position,
                   fmt::format("an item of `rate_limits` needs a list of `actions`, found {}",
                               actions == nullptr ? "none" : described(*actions->value)));
    return rule;
  }
  const std::size_t errors = findings.errors();
  for (const yaml::Node* action : actions->value->values) read_action(*action, needs, rule, findings);
  if (rule.actions.empty() && findings.errors() == errors) {
    findings.error(actions->value->position, "`actions` must name what is counted, found nothing");
  }
  return rule;
}

}  // namespace sluice::policy
