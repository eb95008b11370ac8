#include "policy/yaml_to_json.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace sluice::policy {
namespace {

void append_string(std::string_view text, std::string& out) {
  out.push_back('"');
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
          out.push_back(c);
        }
    }
  }
  out.push_back('"');
}

void append_floating(const std::string& text, std::string& out) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() + text.size() && std::isfinite(value)) {
    out += fmt::format("{}", value);
  } else {
    append_string(text, out);
  }
}

void append_scalar(const yaml::Node& node, std::string& out) {
  const yaml::Scalar scalar = resolve_scalar(node);
  switch (scalar.type) {
    case yaml::Scalar::Type::null:
      out += "null";
      return;
    case yaml::Scalar::Type::boolean:
      out += scalar.boolean ? "true" : "false";
      return;
    case yaml::Scalar::Type::integer:
      out += fmt::format("{}{}", scalar.negative && scalar.magnitude > 0 ? "-" : "", scalar.magnitude);
      return;
    case yaml::Scalar::Type::floating:
      append_floating(node.text, out);
      return;
    case yaml::Scalar::Type::string:
      append_string(node.text, out);
      return;
  }
}

}  // namespace

void append_json(const yaml::Node& node, std::string& out) {
  switch (node.kind) {
    case yaml::Node::Kind::null:
    case yaml::Node::Kind::scalar:
      append_scalar(node, out);
      return;
    case yaml::Node::Kind::sequence:
      out.push_back('[');
      for (std::size_t i = 0; i < node.values.size(); ++i) {
        if (i > 0) out.push_back(',');
        append_json(*node.values[i], out);
      }
      out.push_back(']');
      return;
    case yaml::Node::Kind::map:
      out.push_back('{');
      for (std::size_t i = 0; i < node.keys.size(); ++i) {
        if (i > 0) out.push_back(',');
        append_string(node.keys[i]->text, out);
        out.push_back(':');
        append_json(*node.values[i], out);
      }
      out.push_back('}');
      return;
  }
}

}  // namespace sluice::policy
