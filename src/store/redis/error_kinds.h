// What an error reply of the server means.
#pragma once

#include <string>
#include <string_view>

#include "store/failure.h"

namespace sluice::store::redis {

/// Does the server not know the script? Then nothing was executed.
[[nodiscard]] bool is_noscript(std::string_view error);

/// The kind of an error reply, by its first word; for an error inside a script (Redis up to 6 wraps it in a sentence,
/// and a right that is missing there has no word of its own) also by what stands inside. Never `none`.
[[nodiscard]] Failure classify_error(std::string_view error);

/// The server's own words for a log: their first line, printable, at most 200 bytes.
[[nodiscard]] std::string one_line(std::string_view error);

/// What a log tells beside the kind: the server's own words where the kind alone does not say what is wrong, and what
/// to look at. Empty where the kind tells all.
[[nodiscard]] std::string error_detail(Failure failure, std::string_view error);

}  // namespace sluice::store::redis
