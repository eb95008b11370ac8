#include "policy/denial_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/parse_options.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::policy {
namespace {

/// Enough for a page, and small beside what else an answer costs.
constexpr std::size_t kLongest = std::size_t{16} * 1024;

DenialText read_text(const FieldReader& limit, std::string_view name, Findings& findings) {
  const std::optional<std::string_view> text = limit.text(name);
  if (!text) return {};
  const yaml::Position place = limit.find(name)->value->position;
  if (text->size() > kLongest) {
    findings.error(place, fmt::format("`{}` has {} bytes; at most {} are allowed", name, text->size(), kLongest));
    return {};
  }
  Result<DenialText> parsed = DenialText::parse(*text);
  if (parsed) return *std::move(parsed);
  findings.error(place, fmt::format("`{}`: {}", name, parsed.error().message));
  return {};
}

/// Filled in, is it JSON, whatever the figures are?
bool is_json(const DenialText& body) {
  const DenialFigures some{.name = "a \"name\"", .limit = 1, .remaining = 1, .retry_after = 1, .reset_after = 1};
  const DenialFigures never{.name = "n", .limit = 0, .remaining = 0, .retry_after = {}, .reset_after = {}};
  return std::ranges::all_of(std::array{some, never}, [&](const DenialFigures& figures) {
    constexpr std::size_t deepest = 1'000;
    std::string text;
    body.render(figures, true, text);
    boost::json::error_code error;
    boost::json::parse_options options;
    options.max_depth = deepest;
    boost::json::parse(text, error, {}, options);
    return !error;
  });
}

}  // namespace

Denial read_denial(const FieldReader& limit, Findings& findings) {
  Denial denial;
  denial.message = read_text(limit, "message", findings);
  denial.body = read_text(limit, "body", findings);
  const bool has_body = limit.find("body") != nullptr;
  if (has_body && limit.find("message") != nullptr) {
    findings.error(limit.find("message")->key->position, "give `message` or `body`, found both");
  }
  const std::optional<std::string_view> type = limit.text("content_type");
  if (type) {
    const yaml::Position place = limit.find("content_type")->value->position;
    if (!has_body) findings.error(place, "`content_type` is that of a `body`, which is absent");
    const bool is_plain = std::ranges::all_of(*type, [](char c) { return c >= ' ' && c <= '~'; });
    if (type->empty() || !is_plain) {
      findings.error(place,
                     fmt::format("`content_type` must be a media type such as text/plain, found {}", quote(*type)));
    }
    denial.content_type = *type;
  } else if (has_body) {
    const std::string_view body = limit.text("body").value_or("");
    const std::size_t first = body.find_first_not_of(" \t\r\n");
    const bool is_json = first != std::string_view::npos && (body[first] == '{' || body[first] == '[');
    denial.content_type = is_json ? "application/json" : "text/plain; charset=utf-8";
  }
  if (!denial.body.empty() && denial.content_type.find("json") != std::string::npos && !is_json(denial.body)) {
    findings.warning(limit.find("body")->value->position,
                     fmt::format("`body` is sent as {}, but is no JSON once its figures are filled in (a time may be "
                                 "null, and {{{{name}}}} stands within quotes)",
                                 quote(denial.content_type)));
  }
  return denial;
}

}  // namespace sluice::policy
