#include "policy/field_reader.h"

#include <fmt/format.h>

#include <unordered_map>

namespace sluice::policy {

FieldReader::FieldReader(const yaml::Node& map, Findings& findings) : findings_(findings) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const yaml::Node& key = *map.keys[i];
    if (key.kind != yaml::Node::Kind::scalar || resolve_scalar(key).type != yaml::Scalar::Type::string) {
      findings.error(key.position, fmt::format("a key must be a name, found {}", described(key)));
      continue;
    }
    const auto [place, is_new] = places.emplace(key.text, fields_.size());
    if (is_new) {
      fields_.push_back({key.text, &key, map.values[i]});
      continue;
    }
    findings.warning(key.position, fmt::format("`{}` is given twice here; the last one counts", key.text));
    fields_[place->second] = {key.text, &key, map.values[i]};
  }
}

const Field* FieldReader::find(std::string_view name) const {
  for (const Field& field : fields_) {
    if (field.name != name) continue;
    const bool is_null =
        field.value->kind == yaml::Node::Kind::null || (field.value->kind == yaml::Node::Kind::scalar &&
                                                        resolve_scalar(*field.value).type == yaml::Scalar::Type::null);
    return is_null ? nullptr : &field;
  }
  return nullptr;
}

std::optional<std::string_view> FieldReader::text(std::string_view name) const {
  const Field* field = find(name);
  if (field == nullptr) return std::nullopt;
  if (field->value->kind != yaml::Node::Kind::scalar) {
    findings_.error(field->value->position,
                    fmt::format("`{}` must be a text, found {}", name, described(*field->value)));
    return std::nullopt;
  }
  if (resolve_scalar(*field->value).type == yaml::Scalar::Type::floating) {
    findings_.error(field->value->position, fmt::format("`{}` must be a text, found the number {}; put it in quotes",
                                                        name, described(*field->value)));
    return std::nullopt;
  }
  return field->value->text;
}

std::optional<bool> FieldReader::boolean(std::string_view name) const {
  const Field* field = find(name);
  if (field == nullptr) return std::nullopt;
  if (field->value->kind == yaml::Node::Kind::scalar) {
    const yaml::Scalar scalar = resolve_scalar(*field->value);
    if (scalar.type == yaml::Scalar::Type::boolean) return scalar.boolean;
  }
  findings_.error(field->value->position,
                  fmt::format("`{}` must be true or false, found {}", name, described(*field->value)));
  return std::nullopt;
}

std::optional<std::uint64_t> FieldReader::number(std::string_view name, std::uint64_t least, std::uint64_t most) const {
  const Field* field = find(name);
  if (field == nullptr) return std::nullopt;
  if (field->value->kind == yaml::Node::Kind::scalar) {
    const yaml::Scalar scalar = resolve_scalar(*field->value);
    const bool is_negative = scalar.negative && scalar.magnitude > 0;
    if (scalar.type == yaml::Scalar::Type::integer && !is_negative && scalar.magnitude >= least &&
        scalar.magnitude <= most) {
      return scalar.magnitude;
    }
  }
  findings_.error(field->value->position, fmt::format("`{}` must be a whole number from {} to {}, found {}", name,
                                                      least, most, described(*field->value)));
  return std::nullopt;
}

std::vector<const yaml::Node*> FieldReader::maps(std::string_view name) const {
  const Field* field = find(name);
  if (field == nullptr) return {};
  if (field->value->kind != yaml::Node::Kind::sequence) {
    findings_.error(field->value->position,
                    fmt::format("`{}` must be a list, found {}", name, described(*field->value)));
    return {};
  }
  std::vector<const yaml::Node*> maps;
  for (const yaml::Node* item : field->value->values) {
    if (item->kind == yaml::Node::Kind::map) {
      maps.push_back(item);
    } else {
      findings_.error(item->position, fmt::format("each item of `{}` must be a map, found {}", name, described(*item)));
    }
  }
  return maps;
}

}  // namespace sluice::policy
