#include "policy/denial_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::policy {
namespace {

constexpr std::string_view kOpen = "{{";
constexpr std::string_view kClose = "}}";

void append_json_text(std::string_view text, std::string& out) {
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
}

}  // namespace

std::optional<DenialText::Figure> DenialText::find(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Figure>, 5> names{{{"name", Figure::name},
                                                                      {"limit", Figure::limit},
                                                                      {"remaining", Figure::remaining},
                                                                      {"retry_after", Figure::retry_after},
                                                                      {"reset_after", Figure::reset_after}}};
  for (const auto& [known, figure] : names) {
    if (known == name) return figure;
  }
  return std::nullopt;
}

Result<DenialText> DenialText::parse(std::string_view text) {
  DenialText parsed;
  while (!text.empty()) {
    const std::size_t open = text.find(kOpen);
    Piece piece{.text = std::string(text.substr(0, open))};
    text = open == std::string_view::npos ? std::string_view{} : text.substr(open + kOpen.size());
    if (open != std::string_view::npos) {
      const std::size_t close = text.find(kClose);
      const std::string_view name = text.substr(0, close);
      const std::optional<Figure> figure = close == std::string_view::npos ? std::nullopt : find(name);
      if (!figure) {
        return Error{"behind {{ expected name, limit, remaining, retry_after or reset_after, and then }}"};
      }
      piece.figure = *figure;
      text = text.substr(close + kClose.size());
    }
    parsed.pieces_.push_back(std::move(piece));
  }
  return parsed;
}

void DenialText::render(const DenialFigures& figures, bool in_json, std::string& out) const {
  const auto append_seconds = [&](const std::optional<std::uint64_t>& seconds) {
    out += seconds ? std::to_string(*seconds) : std::string(in_json ? "null" : "never");
  };
  for (const Piece& piece : pieces_) {
    out += piece.text;
    switch (piece.figure) {
      case Figure::none:
        break;
      case Figure::name:
        if (in_json) {
          append_json_text(figures.name, out);
        } else {
          out += figures.name;
        }
        break;
      case Figure::limit:
        out += std::to_string(figures.limit);
        break;
      case Figure::remaining:
        out += std::to_string(figures.remaining);
        break;
      case Figure::retry_after:
        append_seconds(figures.retry_after);
        break;
      case Figure::reset_after:
        append_seconds(figures.reset_after);
        break;
    }
  }
}

}  // namespace sluice::policy
