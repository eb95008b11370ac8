// What a caller is told when a limit denies: a template of the policy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sluice/decision.h"

namespace sluice::policy {

/// What a template may ask for.
struct DenialFigures {
  std::string_view name;  ///< of the limit
  std::uint64_t limit = 0;
  std::uint64_t remaining = 0;
  std::optional<std::uint64_t> retry_after;  ///< whole seconds, from 1; nothing: never
  std::optional<std::uint64_t> reset_after;  ///< whole seconds; nothing: never
};

/// A text in which {{name}}, {{limit}}, {{remaining}}, {{retry_after}} and {{reset_after}} stand for figures.
/// Immutable.
class DenialText {
 public:
  DenialText() = default;
  /// The error is a sentence without a place.
  [[nodiscard]] static Result<DenialText> parse(std::string_view text);
  [[nodiscard]] bool empty() const { return pieces_.empty(); }
  /// Appends the text. `in_json`: a name is escaped as within a JSON string. Never is "null" there, else "never".
  void render(const DenialFigures& figures, bool in_json, std::string& out) const;

 private:
  enum class Figure : std::uint8_t { none, name, limit, remaining, retry_after, reset_after };
  struct Piece {
    std::string text;
    Figure figure = Figure::none;  ///< behind the text
  };
  static std::optional<Figure> find(std::string_view name);
  std::vector<Piece> pieces_;
};

/// Of one limit.
struct Denial {
  DenialText message;        ///< in place of "rate limit exceeded"
  DenialText body;           ///< in place of the whole body
  std::string content_type;  ///< of that body
};

}  // namespace sluice::policy
