#include "policy/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace sluice::policy {

std::string Finding::to_string() const {
  const std::string_view kind = severity == Severity::error ? "error" : "warning";
  if (line == 0) return fmt::format("{}: {}: {}", file, kind, message);
  return fmt::format("{}:{}:{}: {}: {}", file, line, column, kind, message);
}

void Findings::add(Finding::Severity severity, yaml::Position position, std::string message) {
  if (severity == Finding::Severity::error) ++errors_;
  if (findings_.size() == kMost) {
    ++left_out_;
    return;
  }
  findings_.push_back({severity, file_, position.line, position.column, std::move(message)});
}

void Findings::drain_to(std::vector<Finding>& out) {
  std::vector<std::size_t> order(findings_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::tuple(findings_[i].line, findings_[i].column, i); });
  for (const std::size_t i : order) out.push_back(std::move(findings_[i]));
  if (left_out_ > 0) {
    const auto severity = errors_ > 0 ? Finding::Severity::error : Finding::Severity::warning;
    out.push_back({severity, file_, 0, 0, fmt::format("{} more findings are not shown", left_out_)});
  }
  findings_.clear();
}

std::string quote(std::string_view text) {
  static constexpr std::size_t kLongest = 60;
  std::string out = "\"";
  std::string_view shown = text;
  if (text.size() > kLongest) {
    std::size_t cut = kLongest;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
    shown = text.substr(0, cut);
  }
  for (const char c : shown) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  out += shown.size() < text.size() ? "…\"" : "\"";
  return out;
}

std::string described(const yaml::Node& node) {
  switch (node.kind) {
    case yaml::Node::Kind::null:
      return "nothing";
    case yaml::Node::Kind::sequence:
      return "a list";
    case yaml::Node::Kind::map:
      return "a map";
    case yaml::Node::Kind::scalar:
      break;
  }
  switch (resolve_scalar(node).type) {
    case yaml::Scalar::Type::null:
      return "nothing";
    case yaml::Scalar::Type::boolean:
    case yaml::Scalar::Type::integer:
    case yaml::Scalar::Type::floating:
      return node.text.size() <= 40 ? node.text : node.text.substr(0, 40) + "…";
    case yaml::Scalar::Type::string:
      break;
  }
  return (node.plain ? "the text " : "the quoted text ") + quote(node.text);
}

}  // namespace sluice::policy
