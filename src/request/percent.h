// %XX in paths and queries.
#pragma once

#include <string>
#include <string_view>

namespace sluice::request {

/// Appends `text` with all escapes undone but those of / ? # and %, which stay, in capitals: whatever spelling a server
/// takes for the same becomes equal, and stays the same when it is done again. A % that begins no escape becomes %25.
void append_normal(std::string_view text, std::string& out);

/// Appends the bytes that a part of a query stands for: escapes undone, + as a space.
void append_decoded(std::string_view text, std::string& out);

}  // namespace sluice::request
