// What an error reply of the server means.
#pragma once

#include <string_view>

#include "store/failure.h"

namespace sluice::store::redis {

/// Does the server not know the script? Then nothing was executed.
[[nodiscard]] bool is_noscript(std::string_view error);

/// The kind of an error reply, by its first word; for an error inside a script (Redis up to 6 wraps it in a sentence)
/// also by the word inside. Never `none`.
[[nodiscard]] Failure classify_error(std::string_view error);

}  // namespace sluice::store::redis
