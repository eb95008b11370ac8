// Answers in words, the same on all ports.
#pragma once

#include <cstddef>
#include <string_view>

#include "limiter/call.h"
#include "limiter/verb_call.h"

namespace sluice::limiter {

/// As the `source` of an answer.
[[nodiscard]] std::string_view source_name(Source source);
/// As policies name it.
[[nodiscard]] std::string_view algorithm_name(Algorithm algorithm);
/// What a limit does with a charge that does not fit: enforce, shadow or quota.
[[nodiscard]] std::string_view mode_name(store::Enforcement enforcement);

/// A verdict to tell: of one descriptor, or of the request as a whole.
struct Verdict {
  bool allowed = true;
  bool fits = true;                    ///< what the limit itself found
  bool never_fits = false;             ///< and that whatever its state is
  const policy::Rule* rule = nullptr;  ///< null: no limit took part
  const Decision& decision;
  bool known_domain = true;

  [[nodiscard]] bool has_figures() const;
};
[[nodiscard]] Verdict verdict_of(const Answer& answer);
[[nodiscard]] Verdict verdict_of(const Answer& answer, std::size_t descriptor);
/// Why: docs/http-api.md has all that there are.
[[nodiscard]] std::string_view reason_of(const Verdict& verdict);

/// What came of a verb: docs/http-api.md has all that there are.
[[nodiscard]] std::string_view result_of(const VerbAnswer& answer);
[[nodiscard]] std::string_view result_of(const VerbAnswer& answer, const VerbStatus& status);

}  // namespace sluice::limiter
