#include "policy/requests_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/suggest.h"

namespace sluice::policy {

void check_keys(const FieldReader& fields, std::initializer_list<std::string_view> known, std::string_view place,
                Findings& findings) {
  for (const Field& field : fields.fields()) {
    if (std::ranges::find(known, field.name) != known.end()) continue;
    const std::string_view meant = nearest(field.name, std::span(known.begin(), known.size()));
    findings.error(field.key->position, meant.empty() ? fmt::format("unknown key {} {}", quote(field.name), place)
                                                      : fmt::format("unknown key {} {}; did you mean `{}`?",
                                                                    quote(field.name), place, meant));
  }
}

std::vector<PlacedText> texts_of(const FieldReader& fields, std::string_view name, Findings& findings) {
  const Field* field = fields.find(name);
  if (field == nullptr) return {};
  std::vector<PlacedText> texts;
  const auto add = [&](const yaml::Node& node) {
    if (node.kind == yaml::Node::Kind::scalar && resolve_scalar(node).type != yaml::Scalar::Type::null) {
      texts.push_back({node.text, node.position});
    } else {
      findings.error(node.position, fmt::format("`{}` holds texts, found {}", name, described(node)));
    }
  };
  if (field->value->kind != yaml::Node::Kind::sequence) {
    add(*field->value);
  } else {
    for (const yaml::Node* item : field->value->values) add(*item);
  }
  return texts;
}

const yaml::Node& map_of(const yaml::Node& node, std::string_view name, Findings& findings) {
  static const yaml::Node kEmpty = [] {
    yaml::Node map;
    map.kind = yaml::Node::Kind::map;
    return map;
  }();
  if (node.kind == yaml::Node::Kind::map) return node;
  const bool is_null = node.kind == yaml::Node::Kind::null ||
                       (node.kind == yaml::Node::Kind::scalar && resolve_scalar(node).type == yaml::Scalar::Type::null);
  if (!is_null) findings.error(node.position, fmt::format("`{}` must be a map, found {}", name, described(node)));
  return kEmpty;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), to_lower);
  return out;
}

}  // namespace sluice::policy
