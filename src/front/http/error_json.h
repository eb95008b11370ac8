// How everything that is not a decision is told.
#pragma once

#include <string>
#include <string_view>

namespace sluice::http {

/// Appends `{"error":code,"message":message}`.
void encode_error(std::string_view code, std::string_view message, std::string& out);

}  // namespace sluice::http
