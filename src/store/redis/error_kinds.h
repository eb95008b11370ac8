// What an error reply of the server means.
#pragma once

#include <string>
#include <string_view>

#include "store/failure.h"

namespace sluice::store::redis {

/// Does the server not know the script? Then nothing was executed.
[[nodiscard]] bool is_noscript(std::string_view error);

/// The kind of an error reply, by its first word; for an error inside a script (Redis up to 6 wraps it in a sentence)
/// also by the word inside. Never `none`.
[[nodiscard]] Failure classify_error(std::string_view error);

/// The server's own words for a log, where the kind alone does not tell what to mend (other errors and NOPERM): their
/// first line, printable, at most 200 bytes. Else empty.
[[nodiscard]] std::string error_detail(Failure failure, std::string_view error);

}  // namespace sluice::store::redis
